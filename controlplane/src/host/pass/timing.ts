/**
 * Every waiting time of the host engine, in one frozen value that the configuration may override.
 */
export interface EngineTiming {
  /** From the power-on order to the runner's first message. */
  readonly bootTimeoutMs: number;
  /** Verify, power and inspect operations, counted from when they were sent. */
  readonly operationTimeoutMs: number;
  /** One clean step that erases nothing, counted from when it was sent. */
  readonly cleanStepTimeoutMs: number;
  /** How long after its verdict a discarded or formatted device is read again. */
  readonly rereadDelayMs: number;
  /** One attempt to get an image and to write it, from the end of its wait in the rack's queue. */
  readonly imageTimeoutMs: number;
  /** How long it may wait in that queue. */
  readonly imageQueueTimeoutMs: number;
  /** One attempt of a webhook, including calls with an unknown result. */
  readonly webhookTimeoutMs: number;
  /** How long a run may wait for its slot or for an absent agent before it is given up. */
  readonly runTimeoutMs: number;
  /** How long work prevents a host's deletion after the last contact with its agent. */
  readonly contactDeadlineMs: number;
  /** First pause after an unknown result; doubles up to `retryDelayMaxMs`. */
  readonly retryDelayMs: number;
  readonly retryDelayMaxMs: number;
  /** How long conflicts may last, from a step's first one (DESIGN §3, retryAfter). */
  readonly conflictBudgetMs: number;
  /** How long a host's image may be unavailable before the host returns to its earlier image. */
  readonly registryBudgetMs: number;
  /** Transient results in a row, or their duration, that become a visible fault. */
  readonly transientFaultCount: number;
  readonly transientFaultMs: number;
  /** How long a forced removal waits for one call to agent or BMC. */
  readonly forcedCallTimeoutMs: number;
  /** First pause before a failed goal is retried; doubles up to `goalDelayMaxMs`. */
  readonly goalDelayMs: number;
  readonly goalDelayMaxMs: number;
  /** Failures in a row of one goal after which only a person restarts it. */
  readonly goalFailuresMax: number;
  /** The most runs that a goal may start within `goalRunsWithinMs`, even if all succeed. */
  readonly goalRunsMax: number;
  readonly goalRunsWithinMs: number;
  /** How long the host stays in the runner after a failed clean, for its logs and for a resume. */
  readonly runnerKeepMs: number;
  /** Failed cleans in a row that are restarted automatically. */
  readonly automaticRecleansMax: number;
  /** Attempts of one step that may end as `interrupted` before the run fails. */
  readonly interruptionsMax: number;
}

export const defaultTiming: EngineTiming = Object.freeze({
  bootTimeoutMs: 20 * 60_000,
  operationTimeoutMs: 5 * 60_000,
  cleanStepTimeoutMs: 24 * 3_600_000,
  rereadDelayMs: 10_000,
  imageTimeoutMs: 2 * 3_600_000,
  imageQueueTimeoutMs: 24 * 3_600_000,
  webhookTimeoutMs: 5 * 60_000,
  runTimeoutMs: 7 * 24 * 3_600_000,
  contactDeadlineMs: 90_000,
  retryDelayMs: 2_000,
  retryDelayMaxMs: 60_000,
  conflictBudgetMs: 15 * 60_000,
  registryBudgetMs: 30 * 60_000,
  transientFaultCount: 5,
  transientFaultMs: 10 * 60_000,
  forcedCallTimeoutMs: 60_000,
  goalDelayMs: 60_000,
  goalDelayMaxMs: 3_600_000,
  goalFailuresMax: 3,
  goalRunsMax: 30,
  goalRunsWithinMs: 3_600_000,
  runnerKeepMs: 30 * 60_000,
  automaticRecleansMax: 2,
  interruptionsMax: 5,
});
