/**
 * How often a session sends heartbeats, and how long work may go on without one. A lease outlives
 * one lost heartbeat. After two in a row it lapses until the next answer. `settleMs` is longer than
 * the pause between two heartbeats, so that a deadline needs no other trigger. An agent without
 * work needs no lease: it sends heartbeats less often, and one at once when work arrives. Its
 * connection shows that it is alive: the keepalive does not depend on heartbeats.
 */
export interface SessionTiming {
  readonly heartbeatIntervalMs: number;
  /** While the agent has no work. */
  readonly idleHeartbeatIntervalMs: number;
  /** How long the agent may begin destructive work after an acknowledged heartbeat (R11). */
  readonly leaseDurationMs: number;
}

export const defaultSessionTiming: SessionTiming = Object.freeze({
  heartbeatIntervalMs: 5_000,
  idleHeartbeatIntervalMs: 20_000,
  leaseDurationMs: 15_000,
});
