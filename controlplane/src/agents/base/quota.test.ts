/** A quota keeps a noisy rack from using the capacity of others. */
import type { CallContext, RackId } from '@rackwright/messages';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultAgentLimits } from './limits.ts';
import { ReadPaces } from './quota.ts';
import { RackSlots } from './rack-slots.ts';

function stream(key: string) {
  const over = new AbortController();
  const certificate = {
    publicKeySha256: key,
    der: Buffer.alloc(0),
    fingerprintSha256: '',
    uris: [],
  };
  const context: CallContext = {
    ...{ method: '', peerAddress: '', deadlineMs: Infinity, signal: over.signal },
    header: () => undefined,
    peerCertificate: () => certificate,
  };
  return { context, end: () => over.abort() };
}

describe('the quota of a rack', () => {
  const clock = { nowMs: () => 0, suspendAwareMs: () => 0, after: () => () => undefined };
  const limits = { ...defaultAgentLimits, messagesBurst: 3, bytesBurst: 1_000 };

  test('is one for all its streams, and no other rack’s', () => {
    const quotas = new ReadPaces(limits, clock);
    const [one, two] = [stream('a'), stream('a')].map(({ context }) => quotas.paceOf(context));
    const other = quotas.paceOf(stream('b').context);
    expect([one?.(1), two?.(1), one?.(1)]).toEqual([undefined, undefined, undefined]);
    expect(two?.(1)).toBeInstanceOf(Promise);
    expect(other(1)).toBeUndefined();
  });

  test('counts bytes as well as messages', () => {
    const pace = new ReadPaces(limits, clock).paceOf(stream('a').context);
    expect(pace(1_000)).toBeUndefined();
    expect(pace(1)).toBeInstanceOf(Promise);
  });

  test('is no other one after the streams were opened again, and is forgotten once full', () => {
    const moved = { now: 0, due: [] as [number, () => void][] };
    const quotas = new ReadPaces(limits, {
      ...clock,
      nowMs: () => moved.now,
      after: (ms, act) => {
        const entry: [number, () => void] = [moved.now + ms, act];
        moved.due.push(entry);
        return () => void moved.due.splice(moved.due.indexOf(entry), 1);
      },
    });
    for (let round = 0; round < 3; round += 1) {
      const { context, end } = stream('a');
      expect(quotas.paceOf(context)(1)).toBeUndefined();
      end();
    }
    const last = stream('a');
    expect(quotas.paceOf(last.context)(1)).toBeInstanceOf(Promise);
    last.end();
    expect(quotas.size).toBe(1);
    moved.now = 60_000;
    for (const [atMs, act] of [...moved.due]) if (atMs <= moved.now) act();
    expect(quotas.size).toBe(0);
  });

  test('is forgotten with the last stream, also of one that is over before it began', () => {
    const quotas = new ReadPaces(limits, clock);
    const streams = [stream('a'), stream('a'), stream('b')];
    streams[2]?.end();
    for (const { context } of streams) quotas.paceOf(context);
    expect(quotas.size).toBe(1);
    streams[0]?.end();
    expect(quotas.size).toBe(1);
    streams[1]?.end();
    expect(quotas.size).toBe(0);
  });
});

const still = { nowMs: () => 0 };
const slotsOf = (atOnceMax: number, perRackMax: number) =>
  new RackSlots({ atOnceMax, perRackMax, perRackSharedMax: perRackMax }, still);

describe('slots', () => {
  test('are fewer for a rack while another has had one lately', () => {
    const clock = { now: 0, nowMs: () => clock.now };
    const slots = new RackSlots({ atOnceMax: 8, perRackMax: 3, perRackSharedMax: 1 }, clock);
    const isFree = (rackId: RackId) => typeof slots.take(rackId) === 'function';
    expect([isFree('a'), isFree('a')]).toEqual([true, true]);
    expect(isFree('b')).toBe(true);
    expect(isFree('a')).toBe(false);
    clock.now = 2_001;
    expect(slots.take('c')).toBeInstanceOf(Function);
    clock.now = 4_100;
    expect(isFree('a')).toBe(true);
  });

  test('leave room for a rack with little while another has much', async () => {
    const slots = slotsOf(4, 3);
    const noisy = [1, 2, 3, 4].map(() => slots.take('noisy'));
    expect(noisy.map((slot) => slot instanceof Promise)).toEqual([false, false, false, true]);
    expect(slots.take('quiet')).toBeInstanceOf(Function);
    expect(slots.waiting).toBe(1);
  });

  test('are not waited for by who has gone, and not lost to those behind', async () => {
    const slots = slotsOf(1, 1);
    const first = await slots.take('a');
    const gone = new AbortController();
    const left = slots.take('a', gone.signal);
    const behind = slots.take('b');
    expect(slots.waiting).toBe(2);
    gone.abort();
    expect(slots.waiting).toBe(1);
    (await left)();
    expect(slots).toMatchObject({ waiting: 1, underWay: 1 });
    first();
    (await behind)();
    expect(slots).toMatchObject({ waiting: 0, underWay: 0 });
  });

  test('are given in the order in which they were asked for', async () => {
    const slots = slotsOf(1, 1);
    const begun: string[] = [];
    const work = async (rackId: RackId) => {
      const over = await slots.take(rackId);
      begun.push(rackId);
      over();
      over();
    };
    const first = slots.take('z');
    const all = ['a', 'b', 'a', 'c'].map(work);
    (await first)();
    await Promise.all(all);
    expect(begun).toEqual(['a', 'b', 'a', 'c']);
    expect(slots.underWay).toBe(0);
  });

  test('are never more than allowed, and all are given', async () => {
    const racks = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(racks, async (asked) => {
        const slots = slotsOf(4, 2);
        const underWay = new Map<string, number>();
        const work = async (rackId: RackId) => {
          const over = await slots.take(rackId);
          underWay.set(rackId, (underWay.get(rackId) ?? 0) + 1);
          expect(underWay.get(rackId)).toBeLessThanOrEqual(2);
          expect(slots.underWay).toBeLessThanOrEqual(4);
          await Promise.resolve();
          underWay.set(rackId, (underWay.get(rackId) ?? 0) - 1);
          over();
        };
        await Promise.all(asked.map(work));
        expect(slots).toMatchObject({ waiting: 0, underWay: 0 });
      }),
    );
  });
});
