/**
 * Which deployments of a pool are called off: a host that stands as it was, because its image is
 * being fetched, is left so when the pool would not begin that any more. Pure.
 *
 * Invariant: who is out is kept from coming back by nothing that holds the pool, for its slot may
 * heal it; what has begun goes on to its end.
 */
import { type RolloutSlot, type Run, RunOutcome, type store as wire } from '@rackwright/api';
import { heldOf } from './held.ts';
import { isBroken, isSelected, isServing, runUnderWay, type SeenHost } from './seen.ts';
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
    const why = whyNotNow(record, slot, host, surveyed);
    if (why !== undefined) found.set(host.uid, why);
  }
  return found;
}

function isCallable({ run: number }: RolloutSlot, host: SeenHost): boolean {
  const run = runUnderWay(host);
  const isOwn = run !== undefined && run.number === number && run.abort === undefined;
  return isOwn && host.isStillIn;
}

function whyNotNow(
  record: wire.PoolRecord,
  { image }: RolloutSlot,
  host: SeenHost,
  surveyed: Pick<Survey, 'held' | 'heldByHand' | 'opening'>,
): string | undefined {
  const { name } = host;
  const held = heldOf(surveyed, { isPinned: isPinned(record, name) });
  if (held !== undefined && !isBroken(host)) return held.text;
  // R27: a person may want to save what is on its disk.
  if (!isSelected(record.pool?.spec?.hosts, host)) return 'it has left the pool';
  const wanted = wantedBy(record, name);
  if (wanted !== undefined && wanted.image !== image) return 'its image is not wanted any more';
  // Of who is in service windows are asked, and of nobody else.
  return surveyed.opening.isOpen || !isServing(host) ? undefined : 'the window has shut';
}

/** Whether a run has ended because the pool wanted so, or its window had shut. */
export function isCalledOff({ outcome, abort, error }: Run, pool: string): boolean {
  if (outcome !== RunOutcome.CANCELLED) return false;
  return abort === undefined ? error?.type === 'tooLate' : abort.by === pool;
}
