/**
 * Which reimages of a pool are called off: a host that is in service still, because its image is
 * being fetched, is not taken out when the pool may not begin that any more. Pure.
 *
 * Invariant: nobody who is out is kept from coming back; what has begun goes on to its end.
 */
import { type RolloutSlot, type Run, RunOutcome, type store as wire } from '@rackwright/api';
import { heldOf } from './held.ts';
import { isServing, runUnderWay, type SeenHost } from './seen.ts';
import type { Survey } from './survey.ts';
import { isPinned, wantedBy } from './target.ts';

/** Why, by the uids of the hosts. */
export type CallOffs = ReadonlyMap<string, string>;

export function callOffs(
  record: wire.PoolRecord,
  hosts: ReadonlyMap<string, SeenHost>,
  surveyed: Pick<Survey, 'held' | 'heldByHand' | 'opening' | 'slots'>,
): CallOffs {
  const found = new Map<string, string>();
  for (const slot of surveyed.slots) {
    const host = hosts.get(slot.hostUid);
    if (host === undefined || !isCallable(slot, host)) continue;
    const why = whyNotNow(record, slot, surveyed);
    if (why !== undefined) found.set(host.uid, why);
  }
  return found;
}

/** Of who is out already no window was ever asked, and its slot may heal it. */
function isCallable({ run: number }: RolloutSlot, host: SeenHost): boolean {
  const run = runUnderWay(host);
  const isOwn = run !== undefined && run.number === number && run.abort === undefined;
  return isOwn && host.isStillIn && isServing(host);
}

function whyNotNow(
  record: wire.PoolRecord,
  { host, image }: RolloutSlot,
  surveyed: Pick<Survey, 'held' | 'heldByHand' | 'opening'>,
): string | undefined {
  const held = heldOf(surveyed, { isPinned: isPinned(record, host) });
  if (held !== undefined) return held.text;
  if (wantedBy(record, host)?.image !== image) return 'its image is not wanted any more';
  return surveyed.opening.isOpen ? undefined : 'the window has shut';
}

/** Whether a run has ended because the pool wanted so, or its window had shut. */
export function isCalledOff({ outcome, abort, error }: Run, pool: string): boolean {
  if (outcome !== RunOutcome.CANCELLED) return false;
  return abort === undefined ? error?.type === 'tooLate' : abort.by === pool;
}
