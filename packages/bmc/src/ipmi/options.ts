/** How ipmitool is called, for a configuration that is read before any driver is loaded. */
export interface IpmitoolOptions {
  /** File name or path of ipmitool. */
  readonly path: string;
  /** A call is killed after this; ipmitool itself gives up on a silent BMC after about 10 s. */
  readonly callTimeoutMs: number;
}

export const defaultIpmitoolOptions: IpmitoolOptions = { path: 'ipmitool', callTimeoutMs: 20_000 };
