import { expect, test } from 'vitest';
import { FairSlots, type SlotEnd } from './fair-slots.ts';

/** A clock that stands still until the test moves it. */
function standing() {
  let nowMs = 0;
  const due: { readonly atMs: number; readonly run: () => void }[] = [];
  return {
    nowMs: () => nowMs,
    after: (delayMs: number, run: () => void) => {
      const each = { atMs: nowMs + delayMs, run };
      due.push(each);
      return () => {
        const at = due.indexOf(each);
        if (at >= 0) due.splice(at, 1);
      };
    },
    get timers() {
      return due.length;
    },
    async pass(ms: number): Promise<void> {
      const endMs = nowMs + ms;
      for (;;) {
        const next = due.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (next === undefined) break;
        due.splice(due.indexOf(next), 1);
        nowMs = Math.max(nowMs, next.atMs);
        next.run();
        await Promise.resolve();
      }
      nowMs = endMs;
      await Promise.resolve();
    },
  };
}

const never = new AbortController().signal;
const rate = { perSecond: 100, most: 10 };

test('a network that comes now and then gets its slot among many that go on and on', async () => {
  const clock = standing();
  const slots = new FairSlots({ rate, waitMs: 5_000 }, clock);
  const others = Array.from({ length: 100 }, (_, at) => `192.0.2.${at}`);
  let [asked, served] = [0, 0];
  for (let ms = 0; ms < 60_000; ms += 50) {
    // Twenty a second from each, as its own ration allows.
    for (const other of others) void slots.take(other, never);
    if (ms % 5_000 === 0) {
      asked += 1;
      void Promise.resolve(slots.take('198.51.100.1', never)).then((end) => {
        if (end === 'slot') served += 1;
      });
    }
    await clock.pass(50);
  }
  await clock.pass(5_000);
  expect([asked, served]).toEqual([12, 12]);
});

test('a network that asks for all of them leaves every second one to another', async () => {
  const clock = standing();
  const slots = new FairSlots({ rate: { perSecond: 1, most: 1 }, waitMs: 60_000 }, clock);
  const order: string[] = [];
  const take = (network: string) =>
    void Promise.resolve(slots.take(network, never)).then((end) => {
      if (end === 'slot') order.push(network);
    });
  for (const network of ['a', 'a', 'a', 'a', 'b', 'b']) take(network);
  await clock.pass(10_000);
  expect(order).toEqual(['a', 'a', 'b', 'a', 'b', 'a']);
  expect(slots.size).toBe(0);
  expect(clock.timers).toBe(0);
});

test('a caller that waits too long, or with too many, hears when to come again', async () => {
  const clock = standing();
  const slots = new FairSlots({ rate: { perSecond: 0.1, most: 1 }, waitMs: 1_000 }, clock);
  expect(slots.take('a', never)).toBe('slot');
  const waiting = [1, 2, 3, 4].map(async () => slots.take('a', never));
  expect(slots.take('a', never)).toEqual({ lateMs: 50_000 });
  await clock.pass(1_000);
  const ends: SlotEnd[] = await Promise.all(waiting);
  expect(ends.map((end) => (end === 'slot' ? end : typeof end.lateMs))).toEqual(
    Array.from({ length: 4 }, () => 'number'),
  );
  expect(slots.size).toBe(0);
});

test('a caller that goes while it waits takes no slot from others', async () => {
  const clock = standing();
  const slots = new FairSlots({ rate: { perSecond: 1, most: 1 }, waitMs: 60_000 }, clock);
  expect(slots.take('a', never)).toBe('slot');
  const gone = new AbortController();
  const first = slots.take('a', gone.signal);
  const second = slots.take('b', never);
  gone.abort();
  expect(await first).not.toBe('slot');
  await clock.pass(1_000);
  expect(await second).toBe('slot');
  expect(clock.timers).toBe(0);
});
