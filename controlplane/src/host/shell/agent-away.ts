/**
 * Whether a rack's agent is away, by what the rack's record says: any replica may ask. Pure.
 *
 * Must not: be used where an order is sent; there the session itself counts.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { store as wire } from '@rackwright/messages';
import { defaultTiming } from '../pass/timing.ts';

/** A hint that its holder has not renewed for this long counts for nothing. */
export const sessionHintMs = 150_000;

/**
 * From when on the agent counts as away unless it is heard again, wall time: a short while after
 * its session ended, so that a restart is no absence. Undefined: it was never there.
 */
export function awayFromMs(rack: wire.RackRecord): number | undefined {
  const seenMs = lastSeenMs(rack);
  if (seenMs === undefined) return undefined;
  return seenMs + (rack.sessionReplica === '' ? defaultTiming.contactDeadlineMs : sessionHintMs);
}

/** Why nothing can be done in the rack for want of its agent; empty: it is there. */
export function agentAway(rack: wire.RackRecord, nowMs: number): string {
  const fromMs = awayFromMs(rack);
  const seenMs = lastSeenMs(rack);
  if (fromMs === undefined || seenMs === undefined || nowMs < fromMs) return '';
  const since = toJson(TimestampSchema, timestampFromMs(seenMs));
  return `the agent of ${rack.rack?.name} is away since ${since}`;
}

function lastSeenMs({ rack, sessionReplica, sessionTime }: wire.RackRecord): number | undefined {
  const ended = sessionReplica === '' ? rack?.status?.lastSeenTime : undefined;
  const time = ended ?? sessionTime;
  return time === undefined ? undefined : timestampMs(time);
}
