/** A process's use of its machine, and its delays. */
export interface ProcessFigures {
  /** User and system, since the start. */
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  /** Seconds since 1970. */
  readonly startSeconds: number;
  /** The delay of timers since the read before the last one; 0 when nothing was measured. */
  readonly eventLoopLagSeconds: {
    readonly mean: number;
    readonly p99: number;
    readonly max: number;
  };
  /** Time in which the event loop did something, since the start. */
  readonly eventLoopBusySeconds: number;
}
