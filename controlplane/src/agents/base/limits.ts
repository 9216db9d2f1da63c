/** The configured limits of one rack; every other limit follows from them, or is fixed. */
export interface RackLimits {
  /** Messages that are read from one rack in a second. */
  readonly messagesPerSecond: number;
  /** Bytes that are read from one rack in a second. */
  readonly bytesPerSecond: number;
  /** Discovered machines that one rack reports in a minute. */
  readonly discoveredPerMinute: number;
}

/** How much of the control plane one rack may use. */
export interface AgentLimits extends RackLimits {
  /** What may be read from one rack at once, before its rate applies. */
  readonly messagesBurst: number;
  readonly bytesBurst: number;
  /** Streams of one rack at once: a new session opens before the end of the old one is noticed. */
  readonly streamsPerRackMax: number;
  /** Reports that are folded in at once. */
  readonly reportsAtOnceMax: number;
  /** The most of these reports from one rack while no other rack reports. */
  readonly reportsPerRackAtOnceMax: number;
  /** The most of these reports from one rack while other racks report. */
  readonly reportsPerRackSharedMax: number;
  /** Sessions that are welcomed at once. */
  readonly hellosAtOnceMax: number;
  /** Sessions that wait for their welcome. Any further agent has to retry later. */
  readonly hellosWaitingMax: number;
  /** The retry delay for an agent that finds no room, before its own jitter. */
  readonly busyRetryAfterMs: number;
  /** Messages that may wait for a slow agent; a session beyond that is ended. */
  readonly outboxMessagesMax: number;
  /** Operations, runners and grants in one Hello, each. */
  readonly helloEntriesMax: number;
  /** Discovered machines that one rack reports at once, before its rate applies. */
  readonly discoveredBurst: number;
}

/**
 * One rack alone may use all capacity. The slots keep it from delaying others: no rack has more
 * than half of them then. The rates only stop a load that no proper agent causes.
 */
export const defaultAgentLimits: AgentLimits = Object.freeze({
  messagesPerSecond: 5_000,
  messagesBurst: 20_000,
  bytesPerSecond: 16 * 1024 * 1024,
  bytesBurst: 64 * 1024 * 1024,
  streamsPerRackMax: 8,
  reportsAtOnceMax: 64,
  reportsPerRackAtOnceMax: 32,
  reportsPerRackSharedMax: 4,
  hellosAtOnceMax: 12,
  hellosWaitingMax: 8_192,
  busyRetryAfterMs: 5_000,
  outboxMessagesMax: 10_000,
  helloEntriesMax: 8_192,
  discoveredPerMinute: 60,
  discoveredBurst: 128,
});

/** All bounds of a rack: it may send four seconds' worth at once. */
export function agentLimitsOf(configured: RackLimits): AgentLimits {
  return {
    ...defaultAgentLimits,
    ...configured,
    messagesBurst: 4 * configured.messagesPerSecond,
    bytesBurst: 4 * configured.bytesPerSecond,
  };
}
