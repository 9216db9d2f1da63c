/** The machine's parts for a burn-in: processors, free memory, and counters. */

export interface BurnInMachine {
  /** Processors that calculate at the same time. */
  readonly threads: number;
  /**
   * Starts one thread that calculates round after round. It calls `report` with the results of each
   * round, in the form of `knownResults`, and `ended` once when the thread ends by itself.
   */
  calculate(
    report: (results: readonly string[]) => void,
    ended: (problem: string) => void,
  ): Calculation;
  /** Memory that programs could have now, bytes. */
  availableBytes(): Promise<number>;
  /** Memory of its own; undefined when there is none. Its content is undefined. */
  allocate(bytes: number): Uint8Array | undefined;
  /** The hottest sensor, degrees Celsius; undefined when none can be read. */
  celsius(): Promise<number | undefined>;
  /** Errors of memory since the boot, as EDAC counts them; undefined when it does not. */
  memoryErrors(): Promise<MemoryErrors | undefined>;
  /** Network cards with the kernel's counts; empty when the machine has none. */
  networkCards(): Promise<readonly NetworkCard[]>;
}

export interface Calculation {
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<unknown>;
}

export interface MemoryErrors {
  readonly corrected: number;
  readonly uncorrected: number;
}

/** Counters since the boot (Documentation/ABI/testing/sysfs-class-net-statistics). */
export interface NetworkCard {
  readonly name: string;
  /** 0: it has no link, or does not report it. */
  readonly linkMbps: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly receiveErrors: number;
  readonly sendErrors: number;
  /** How often the link changed. */
  readonly linkChanges: number;
}
