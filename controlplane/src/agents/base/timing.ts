/**
 * How often a session beats, and for how long it may be worked on without a beat. A lease outlives
 * two beats that are lost; `settleMs` is longer than the pause between two, so that a deadline
 * fires without anybody who looks for it.
 */
export interface SessionTiming {
  readonly heartbeatIntervalMs: number;
  /** How long the agent may begin destructive work after a heartbeat that was answered (R11). */
  readonly leaseDurationMs: number;
}

export const defaultSessionTiming: SessionTiming = Object.freeze({
  heartbeatIntervalMs: 5_000,
  leaseDurationMs: 15_000,
});
