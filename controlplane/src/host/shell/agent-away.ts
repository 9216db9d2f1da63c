/**
 * Whether a rack's agent is away, by the rack's record: for every replica. Pure.
 *
 * Must not: be used where an order is sent; there the session itself counts.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { store as wire } from '@rackwright/messages';
import { defaultTiming } from '../pass/timing.ts';
import type { Brake } from '../pass/types.ts';

/** A hint that its holder has not renewed for this long does not count. */
export const sessionHintMs = 150_000;

/**
 * The wall time from which the agent counts as away unless it is heard again: shortly after its
 * session ended, so that a restart is no absence. Undefined: it was never connected.
 */
export function awayFromMs(rack: wire.RackRecord): number | undefined {
  const seenMs = lastSeenMs(rack);
  if (seenMs === undefined) return undefined;
  return seenMs + (rack.sessionReplica === '' ? defaultTiming.contactDeadlineMs : sessionHintMs);
}

/** The missing agent, which blocks all work in the rack; undefined: it is connected. */
export function agentAway(rack: wire.RackRecord, nowMs: number): Brake | undefined {
  const fromMs = awayFromMs(rack);
  const seenMs = lastSeenMs(rack);
  if (fromMs === undefined || seenMs === undefined || nowMs < fromMs) return undefined;
  const since = toJson(TimestampSchema, timestampFromMs(seenMs));
  const text = `the agent of ${rack.rack?.name} is away since ${since}`;
  return { kind: 'agentAway', text, sinceMs: seenMs };
}

function lastSeenMs({ rack, sessionReplica, sessionTime }: wire.RackRecord): number | undefined {
  const ended = sessionReplica === '' ? rack?.status?.lastSeenTime : undefined;
  const time = ended ?? sessionTime;
  return time === undefined ? undefined : timestampMs(time);
}
