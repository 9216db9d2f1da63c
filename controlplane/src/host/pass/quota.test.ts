/** Limits as lists of slots: who gets a slot, in which order, and for how long it counts. */
import { create, toBinary } from '@bufbuild/protobuf';
import { asRunNumber, type HostUid, store } from '@rackwright/messages';
import { VALUE_BYTES_MAX } from '@rackwright/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  changedSlots,
  hasSlotForNext,
  limitHostsMax,
  nextSlotMs,
  type Quota,
  type QuotaSlots,
  quotaViewOf,
  type SlotChange,
} from './quota.ts';

const none: QuotaSlots = { taken: [], queued: [] };
const two: Quota = { kind: 'atOnce', hosts: 2 };
const twoInTen: Quota = { kind: 'inStretch', hosts: 2, stretchMs: 10_000 };
const h = (hostUid: HostUid, run = 1n) => ({ hostUid, run: asRunNumber(run) });
const take = (hostUid: HostUid): SlotChange => ({ kind: 'take', owner: h(hostUid) });
const leave = (hostUid: HostUid): SlotChange => ({ kind: 'leave', owner: h(hostUid) });

function after(quota: Quota | undefined, ...changes: readonly (readonly [number, SlotChange])[]) {
  return changes.reduce((slots, [ms, change]) => changedSlots(slots, change, quota, ms), none);
}

function uids({ taken, queued }: QuotaSlots): [string[], string[]] {
  return [taken.map((slot) => slot.hostUid), queued.map((slot) => slot.hostUid)];
}

describe('hosts at once', () => {
  test('hosts above the limit queue, and go in the order in which they came', () => {
    const slots = after(two, [0, take('a')], [1, take('b')], [2, take('c')], [3, take('d')]);
    expect(uids(slots)).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
    expect(quotaViewOf('runner', slots, two, 'd').own).toEqual([
      { run: 1n, kind: 'queued', position: 2 },
    ]);
    const later = changedSlots(slots, leave('a'), two, 4);
    expect(uids(later)).toEqual([['b', 'c'], ['d']]);
  });

  test('asking again changes nothing, whether there is a place or not', () => {
    const slots = after(two, [0, take('a')], [1, take('b')], [2, take('c')]);
    for (const uid of ['a', 'b', 'c']) expect(changedSlots(slots, take(uid), two, 9)).toBe(slots);
  });

  test('a host that is there already takes a slot above the limit, and others wait for it', () => {
    const occupy: SlotChange = { kind: 'occupy', owner: h('c') };
    const slots = after(two, [0, take('a')], [1, take('b')], [2, occupy], [3, take('d')]);
    expect(uids(slots)).toEqual([['a', 'b', 'c'], ['d']]);
    expect(uids(changedSlots(slots, leave('b'), two, 4))).toEqual([['a', 'c'], ['d']]);
  });

  test('a host that waits leaves the queue without having had a slot', () => {
    const slots = after(two, [0, take('a')], [1, take('b')], [2, take('c')], [3, leave('c')]);
    expect(uids(slots)).toEqual([['a', 'b'], []]);
  });

  test('a raised limit lets the next ones in; without a limit nobody waits', () => {
    const slots = after(two, [0, take('a')], [1, take('b')], [2, take('c')]);
    const three: Quota = { kind: 'atOnce', hosts: 3 };
    expect(hasSlotForNext(slots, two, 5)).toBe(false);
    expect(hasSlotForNext(slots, three, 5)).toBe(true);
    expect(uids(changedSlots(slots, { kind: 'promote' }, three, 5))).toEqual([['a', 'b', 'c'], []]);
    expect(uids(changedSlots(slots, { kind: 'promote' }, undefined, 5))[1]).toEqual([]);
  });
});

describe('a wipe budget', () => {
  test('counts a wipe until a stretch after it is known to have begun, how long that takes', () => {
    const slots = after(twoInTen, [0, take('a')], [0, take('b')], [1, take('c')]);
    expect(uids(changedSlots(slots, { kind: 'promote' }, twoInTen, 99_000))[1]).toEqual(['c']);
    const begun = changedSlots(slots, leave('a'), twoInTen, 99_000);
    expect(nextSlotMs(begun, twoInTen)).toBe(109_000);
    expect(hasSlotForNext(begun, twoInTen, 108_999)).toBe(false);
    const next = changedSlots(begun, { kind: 'promote' }, twoInTen, 109_000);
    expect(uids(next)).toEqual([['b', 'c'], []]);
  });

  test('a wipe that is tried again while it counts keeps its place, and counts from then', () => {
    const slots = after(twoInTen, [0, take('a')], [1, leave('a')], [9_000, take('a')]);
    expect(slots.taken).toMatchObject([{ hostUid: 'a', open: true }]);
    expect(hasSlotForNext({ ...slots, queued: [] }, twoInTen, 50_000)).toBe(false);
    expect(quotaViewOf('rackWipes', slots, twoInTen, 'a').own).toEqual([{ run: 1n, kind: 'open' }]);
  });

  test('a budget of no hosts lets nobody begin, and has no next time', () => {
    const zero: Quota = { kind: 'inStretch', hosts: 0, stretchMs: 1_000 };
    const slots = after(zero, [0, take('a')]);
    expect(uids(slots)).toEqual([[], ['a']]);
    expect(nextSlotMs(slots, zero)).toBeUndefined();
  });

  test('a budget that was lowered waits for its surplus to be over first', () => {
    const slots = after(twoInTen, [0, take('a')], [0, take('b')], [1, leave('a')], [5, leave('b')]);
    const one: Quota = { ...twoInTen, hosts: 1 };
    expect(nextSlotMs(changedSlots(slots, take('c'), one, 6), one)).toBe(10_005);
  });

  test('never has more wipes begin in any stretch than it allows, whatever is asked', () => {
    const who = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const kind = fc.constantFrom('take', 'leave' as const);
    const moves = fc.array(fc.record({ who, kind, waitMs: fc.integer({ min: 0, max: 6_000 }) }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(moves, (all) => {
        let slots = none;
        let nowMs = 0;
        const begun: { readonly uid: string; readonly ms: number }[] = [];
        for (const { who: uid, kind: move, waitMs } of all) {
          nowMs += waitMs;
          const open = slots.taken.some((slot) => slot.hostUid === uid && slot.open);
          // It begins when it says so, at the latest possible moment of its slot.
          if (move === 'leave' && open) begun.push({ uid, ms: nowMs });
          const change = { kind: move, owner: h(uid) } as SlotChange;
          slots = changedSlots(slots, change, twoInTen, nowMs);
        }
        for (const { ms } of begun) {
          const stretch = begun.filter((each) => each.ms > ms - 10_000 && each.ms <= ms);
          expect(new Set(stretch.map(({ uid }) => uid)).size).toBeLessThanOrEqual(2);
        }
      }),
    );
  });
});

describe('the record of a rack', () => {
  const uid = (index: number) => index.toString(16).padStart(32, '0');
  const nowMs = Date.UTC(2026, 0, 1) + 1;

  /**
   * More hosts than any list takes, which request slots as `kind` does; returns the stored ones.
   */
  function crowded(quota: Quota, kind: 'take' | 'occupy'): QuotaSlots {
    let slots = none;
    for (let index = 0; index < limitHostsMax + 1_000; index++) {
      slots = changedSlots(slots, { kind, owner: h(uid(index), 1_000_000n) }, quota, nowMs);
    }
    return slots;
  }

  test('has room for every place, queue and tombstone at once', () => {
    const runs = crowded({ kind: 'atOnce', hosts: limitHostsMax }, 'take');
    const wipes = crowded({ kind: 'inStretch', hosts: limitHostsMax, stretchMs: 10_000 }, 'take');
    const record = create(store.RackRecordSchema, {
      running: [...runs.taken],
      queued: [...runs.queued],
      wipes: [...wipes.taken],
      wipesQueued: [...wipes.queued],
      tombstones: Array.from({ length: 2_000 }, (_, index) => uid(index)),
    });
    expect(record.queued.length).toBeGreaterThan(0);
    // Other content: labels, the freeze's reason, steps of the agent.
    const elseBytes = 32 * 1024;
    const bytes = toBinary(store.RackRecordSchema, record).length;
    expect(bytes).toBeLessThan(VALUE_BYTES_MAX - elseBytes);
  });

  test('does not grow with hosts that are in the runner above a limit that was lowered', () => {
    expect(crowded({ kind: 'atOnce', hosts: 1 }, 'occupy').taken).toHaveLength(limitHostsMax);
  });
});
