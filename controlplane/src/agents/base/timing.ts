/**
 * How often a session beats, and for how long it may be worked on without a beat. A lease outlives
 * two beats that are lost; `settleMs` is longer than the pause between two, so that a deadline
 * fires without anybody who looks for it. An agent without work needs no lease: it beats less
 * often, and at once when work comes. That it is there shows by its connection, whose keepalive
 * does not wait for a beat.
 */
export interface SessionTiming {
  readonly heartbeatIntervalMs: number;
  /** While the agent has no work. */
  readonly idleHeartbeatIntervalMs: number;
  /** How long the agent may begin destructive work after a heartbeat that was answered (R11). */
  readonly leaseDurationMs: number;
}

export const defaultSessionTiming: SessionTiming = Object.freeze({
  heartbeatIntervalMs: 5_000,
  idleHeartbeatIntervalMs: 20_000,
  leaseDurationMs: 15_000,
});
