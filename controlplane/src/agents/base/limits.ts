/** What the configuration says of one rack; every other bound follows from it, or is fixed. */
export interface RackLimits {
  /** Messages that are read of one rack in a second. */
  readonly messagesPerSecond: number;
  /** Bytes that are read of one rack in a second. */
  readonly bytesPerSecond: number;
  /** Discovered machines that one rack tells of in a minute. */
  readonly discoveredPerMinute: number;
}

/** What one rack may take of the control plane. */
export interface AgentLimits extends RackLimits {
  /** What may be read of one rack at once, before its rate counts. */
  readonly messagesBurst: number;
  readonly bytesBurst: number;
  /** Streams of one rack at once: a new session opens before the old one is seen to be gone. */
  readonly streamsPerRackMax: number;
  /** Reports that are folded in at once. */
  readonly reportsAtOnceMax: number;
  /** Those of one rack among them: while it alone reports, and while others do as well. */
  readonly reportsPerRackAtOnceMax: number;
  readonly reportsPerRackSharedMax: number;
  /** Sessions that are welcomed at once, and that may wait for it; others come again later. */
  readonly hellosAtOnceMax: number;
  readonly hellosWaitingMax: number;
  /** When who finds no room shall come again, before its own jitter. */
  readonly busyRetryAfterMs: number;
  /** Messages that may wait for a slow agent; a session beyond that is ended. */
  readonly outboxMessagesMax: number;
  /** Operations, runners and grants in one Hello, each. */
  readonly helloEntriesMax: number;
  /** Discovered machines that one rack tells of at once, before its rate counts. */
  readonly discoveredBurst: number;
}

/**
 * A rack alone may take all that there is: what keeps it from delaying others are the turns, in
 * which nobody has more than half. The rates only end what no agent does.
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
