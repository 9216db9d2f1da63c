/**
 * RedfishDriver against the simulated BMC of packages/sim: real sockets, real TLS. The machines
 * behind it are a boolean and a note of where they booted from.
 */
import { nodeClock, nodeHttpClient } from '@rackwright/platform/node';
import {
  type PowerOnBoot,
  type RedfishBmc,
  type RedfishBmcOptions,
  startRedfishBmc,
} from '@rackwright/sim/redfish';
import type { BootDevice } from '../driver.ts';
import { Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import type { RedfishTarget } from './conversation.ts';
import { RedfishDriver } from './driver.ts';
import { defaultRedfishOptions, type RedfishDriverParts, type RedfishOptions } from './parts.ts';

export const user = 'operator';
export const password = 'word-that-hides';
export const machineIdentity = {
  uuid: '8f14e45f-ceea-467a-9c2b-3d0e55aa0f01',
  serial: 'HOST-0001',
  manufacturer: 'Simulated',
  model: 'Lab Host',
  chassisSerial: 'CHS-0001',
};

export const clock = nodeClock();
/** Short enough for tests, long enough for a busy machine. */
export const readBack = { windowMs: 1_500, pollMs: 50 };

export interface SimulatedHost {
  readonly bmc: RedfishBmc;
  isOn(): boolean;
  /** The order of its last power-on. */
  bootedFrom(): PowerOnBoot | undefined;
}

export async function startHost(changes: Partial<RedfishBmcOptions> = {}): Promise<SimulatedHost> {
  let on = false;
  let boot: PowerOnBoot | undefined;
  const { habits, ...others } = changes;
  const bmc = await startRedfishBmc({
    user,
    password,
    identity: machineIdentity,
    machine: {
      powerOn: (choice) => {
        on = true;
        boot = choice;
      },
      powerOff: () => {
        on = false;
      },
      isOn: () => on,
    },
    habits: { powerDelayMs: [0, 100], ...habits },
    ...others,
  });
  return { bmc, isOn: () => on, bootedFrom: () => boot };
}

/** Settings that a test may change. */
export interface DriverChanges {
  readonly target?: Partial<RedfishTarget>;
  readonly options?: Partial<RedfishOptions>;
  readonly parts?: Partial<RedfishDriverParts>;
}

/** A governor that never delays a call. */
export function openGovernor(): Governor {
  const limits = { ...defaultGovernorLimits, spacingMs: 0, authenticationFailuresMax: 100 };
  return new Governor(clock, limits, () => {});
}

export function driverFor(
  { address, port }: { readonly address: string; readonly port: number },
  { target, options, parts }: DriverChanges = {},
): RedfishDriver {
  const limits = { ...defaultRedfishOptions.limits, requestTimeoutMs: 2_000 };
  return new RedfishDriver({
    target: {
      address,
      port,
      certificateSha256: undefined,
      user,
      password,
      credential: 'credentials/test@1',
      ...target,
    },
    governor: openGovernor(),
    client: nodeHttpClient(),
    clock,
    options: { ...defaultRedfishOptions, limits, ...options },
    readBack,
    ...parts,
  });
}

/** The source of a simulated BMC's next boot, read like by any client. */
export const bootDevices: Readonly<Record<string, BootDevice>> = {
  None: 'none',
  Pxe: 'network',
  UefiHttp: 'network',
  Hdd: 'disk',
  Cd: 'cd',
};
