/**
 * Limits with one record each: how many hosts may be in the runner at once, and how many wipes may
 * begin in any period of time (DESIGN §5). Pure: computes the changed lists of slots.
 *
 * Invariants:
 * Q1 A run has at most one slot in a list: a repeated request changes nothing.
 * Q2 Slots are given in the order of the requests.
 * Q3 A wipe counts from its permission until a period after it is known to have begun, or never to
 *    begin: the count may be too high, never too low.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { type HostUid, type RunNumber, store } from '@rackwright/messages';

/** The owner of a slot: one run of one host. */
export interface SlotOwner {
  readonly hostUid: HostUid;
  readonly run: RunNumber;
}

/** Taken slots, and the requests that wait for one, oldest first. */
export interface QuotaSlots {
  readonly taken: readonly store.Slot[];
  readonly queued: readonly store.Slot[];
}

export type Quota =
  /** At most this many are taken at once. */
  | { readonly kind: 'atOnce'; readonly hosts: number }
  /** At most this many begin in any period of `stretchMs`. */
  | { readonly kind: 'inStretch'; readonly hosts: number; readonly stretchMs: number };

export type SlotChange =
  /** Requests a slot, now or as soon as one is free. */
  | { readonly kind: 'take'; readonly owner: SlotOwner }
  /** Takes a slot at once: the work is already in progress. */
  | { readonly kind: 'occupy'; readonly owner: SlotOwner }
  /** The slot is no longer needed; a permitted wipe still counts for its period. */
  | { readonly kind: 'leave'; readonly owner: SlotOwner }
  /** Gives free slots to waiting requests. */
  | { readonly kind: 'promote' };

/**
 * The most hosts of one limit: a rack's record has two lists of such slots, two queues and up to 2
 * 000 tombstones, and must stay far below the store's maximum.
 */
export const limitHostsMax = 1_000;
/** The most hosts that wait for one limit; others have to retry later. */
const queuedMax = 400;

/** The slots after a change; the same object when nothing changes. */
export function changedSlots(
  slots: QuotaSlots,
  change: SlotChange,
  quota: Quota | undefined,
  nowMs: number,
): QuotaSlots {
  const current = withoutOver(slots, quota, nowMs);
  switch (change.kind) {
    case 'take':
      return withPromoted(withRequest(current, change.owner, quota, nowMs), quota, nowMs);
    case 'occupy':
      return withOccupied(current, change.owner, quota, nowMs);
    case 'leave':
      return withPromoted(withoutOwner(current, change.owner, quota, nowMs), quota, nowMs);
    case 'promote':
      return withPromoted(current, quota, nowMs);
  }
}

/** Whether `promote` would give a slot to a waiting request now. */
export function hasSlotForNext(
  slots: QuotaSlots,
  quota: Quota | undefined,
  nowMs: number,
): boolean {
  return (
    slots.queued.length > 0 && changedSlots(slots, { kind: 'promote' }, quota, nowMs) !== slots
  );
}

/** When the next slot becomes free by time, wall time; undefined: only an event frees one. */
export function nextSlotMs({ taken }: QuotaSlots, quota: Quota | undefined): number | undefined {
  if (quota?.kind !== 'inStretch') return undefined;
  const ends = taken.flatMap(({ open, time }) =>
    open || time === undefined ? [] : [timestampMs(time) + quota.stretchMs],
  );
  ends.sort((a, b) => a - b);
  // If more are taken than the limit permits, as after it was lowered, the surplus has to end
  // first.
  return quota.hosts === 0 ? undefined : ends[taken.length - quota.hosts];
}

/** Wipes whose period is over no longer count. */
function withoutOver(slots: QuotaSlots, quota: Quota | undefined, nowMs: number): QuotaSlots {
  const stretchMs = quota?.kind === 'inStretch' ? quota.stretchMs : 0;
  const taken = slots.taken.filter(
    ({ open, time }) => open || (time !== undefined && timestampMs(time) + stretchMs > nowMs),
  );
  return taken.length === slots.taken.length ? slots : { ...slots, taken };
}

function withRequest(
  slots: QuotaSlots,
  owner: SlotOwner,
  quota: Quota | undefined,
  nowMs: number,
): QuotaSlots {
  const own = slots.taken.find((slot) => isOf(slot, owner));
  if (own !== undefined) return withReopened(slots, own, quota, nowMs);
  if (quota === undefined || slots.queued.some((slot) => isOf(slot, owner))) return slots;
  if (slots.queued.length >= queuedMax) return slots;
  return { ...slots, queued: [...slots.queued, newSlot(owner, nowMs)] };
}

/** A wipe that already counts and is retried may begin again at any moment (Q3). */
function withReopened(
  slots: QuotaSlots,
  own: store.Slot,
  quota: Quota | undefined,
  nowMs: number,
): QuotaSlots {
  if (quota?.kind !== 'inStretch' || own.open) return slots;
  const open = create(store.SlotSchema, { ...own, time: at(nowMs), open: true });
  return { ...slots, taken: slots.taken.map((slot) => (slot === own ? open : slot)) };
}

function withOccupied(
  slots: QuotaSlots,
  owner: SlotOwner,
  quota: Quota | undefined,
  nowMs: number,
): QuotaSlots {
  if (quota === undefined || slots.taken.some((slot) => isOf(slot, owner))) return slots;
  // The work goes on in any case, and this many already exceed the limit.
  if (slots.taken.length >= limitHostsMax) return slots;
  const queued = slots.queued.filter((slot) => !isOf(slot, owner));
  return { taken: [...slots.taken, opened(owner, nowMs)], queued };
}

function withoutOwner(
  slots: QuotaSlots,
  owner: SlotOwner,
  quota: Quota | undefined,
  nowMs: number,
): QuotaSlots {
  const own = slots.taken.find((slot) => isOf(slot, owner));
  const queued = slots.queued.filter((slot) => !isOf(slot, owner));
  const waited = queued.length < slots.queued.length;
  if (own === undefined) return waited ? { ...slots, queued } : slots;
  if (quota?.kind !== 'inStretch') {
    return { taken: slots.taken.filter((slot) => slot !== own), queued };
  }
  if (!own.open) return waited ? { ...slots, queued } : slots;
  const closed = create(store.SlotSchema, { ...own, time: at(nowMs), open: false });
  return { taken: slots.taken.map((slot) => (slot === own ? closed : slot)), queued };
}

/** Without a limit nothing waits. */
function withPromoted(slots: QuotaSlots, quota: Quota | undefined, nowMs: number): QuotaSlots {
  if (quota === undefined) return slots.queued.length === 0 ? slots : { ...slots, queued: [] };
  const free = Math.max(0, quota.hosts - slots.taken.length);
  if (free === 0 || slots.queued.length === 0) return slots;
  const next = slots.queued.slice(0, free).map((slot) => opened(slot, nowMs));
  return { taken: [...slots.taken, ...next], queued: slots.queued.slice(free) };
}

function opened({ hostUid, run }: SlotOwner, nowMs: number): store.Slot {
  return create(store.SlotSchema, { hostUid, run, time: at(nowMs), open: true });
}

function newSlot({ hostUid, run }: SlotOwner, nowMs: number): store.Slot {
  return create(store.SlotSchema, { hostUid, run, time: at(nowMs) });
}

function at(nowMs: number): Timestamp {
  return timestampFromMs(nowMs);
}

function isOf(slot: store.Slot, { hostUid, run }: SlotOwner): boolean {
  return slot.hostUid === hostUid && slot.run === run;
}

/** Which of the three limits. */
export type QuotaName = 'runner' | 'rackWipes' | 'fleetWipes';

/** One limit as a host sees it: its size, and the position of the host's runs in it. */
export interface QuotaView {
  readonly name: QuotaName;
  /** Undefined: no limit is set. */
  readonly quota: Quota | undefined;
  /** The host's own slots; its run may have one, and earlier runs may have left one. */
  readonly own: readonly OwnSlot[];
  /** When the next slot becomes free by time, wall time. */
  readonly nextSlotMs: number | undefined;
}

export interface OwnSlot {
  readonly run: RunNumber;
  /** `open`: it has its slot. `closed`: a wipe that still counts, but is over. */
  readonly kind: 'queued' | 'open' | 'closed';
  /** Position in the queue, from 1. */
  readonly position?: number;
}

const noSlots: readonly OwnSlot[] = Object.freeze([]);

export function quotaViewOf(
  name: QuotaName,
  slots: QuotaSlots,
  quota: Quota | undefined,
  hostUid: HostUid,
): QuotaView {
  const own = slots.taken.length + slots.queued.length === 0 ? noSlots : ownSlots(slots, hostUid);
  const waits = own.some(({ kind }) => kind === 'queued');
  return { name, quota, own, nextSlotMs: waits ? nextSlotMs(slots, quota) : undefined };
}

function ownSlots(slots: QuotaSlots, hostUid: HostUid): OwnSlot[] {
  const own: OwnSlot[] = [];
  for (const slot of slots.taken) {
    if (slot.hostUid !== hostUid) continue;
    own.push({ run: slot.run, kind: slot.open ? 'open' : 'closed' });
  }
  slots.queued.forEach((slot, index) => {
    if (slot.hostUid === hostUid) {
      own.push({ run: slot.run, kind: 'queued', position: index + 1 });
    }
  });
  return own;
}
