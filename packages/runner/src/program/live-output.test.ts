import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LiveOutput, liveHalfBytesMax, liveIntervalMs } from './live-output.ts';

function setUp() {
  const timers: (() => void)[] = [];
  const told: { offset: number; content: Uint8Array }[] = [];
  const state = { listening: true };
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (delayMs: number, call: () => void) => {
      expect(delayMs).toBe(liveIntervalMs);
      timers.push(call);
      return () => void timers.splice(timers.indexOf(call), 1);
    },
  };
  const live = new LiveOutput(clock, (offset, content) => {
    if (state.listening) told.push({ offset: Number(offset), content });
    return state.listening;
  });
  const tick = (): void => timers.splice(0).forEach((call) => call());
  return { live, state, tick, timers, told };
}

test('the output reports what comes within an interval as one piece', () => {
  const { live, tick, told } = setUp();
  live.push(Buffer.from('ab'));
  live.push(Buffer.from('cd'));
  expect(told).toEqual([]);
  tick();
  live.push(Buffer.from('ef'));
  tick();
  expect(told.map(({ offset, content }) => [offset, String(Buffer.from(content))])).toEqual([
    [0, 'abcd'],
    [4, 'ef'],
  ]);
});

test('the middle of too much output is left out', () => {
  const { live, tick, told } = setUp();
  const all = randomBytes(10 * liveHalfBytesMax);
  for (let at = 0; at < all.length; at += 5_000) live.push(all.subarray(at, at + 5_000));
  tick();
  expect(told.map(({ offset, content }) => [offset, content.length])).toEqual([
    [0, liveHalfBytesMax],
    [9 * liveHalfBytesMax, liveHalfBytesMax],
  ]);
});

test('output that cannot be sent is kept within the same bound until it can', () => {
  const { live, state, tick, timers, told } = setUp();
  state.listening = false;
  for (let count = 0; count < 100; count += 1) live.push(Buffer.alloc(liveHalfBytesMax, count));
  tick();
  tick();
  expect(timers).toHaveLength(1);
  state.listening = true;
  tick();
  expect(told.map(({ content }) => content[0])).toEqual([0, 99]);
  expect(timers).toEqual([]);
});

test('every piece stands where it says, and none comes twice', () => {
  const step = fc.oneof(fc.nat({ max: 3 * liveHalfBytesMax }), fc.constantFrom('tick', 'deaf'));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const { live, state, tick, told } = setUp();
      const whole: Buffer[] = [];
      for (const each of steps) {
        if (each === 'tick') tick();
        else if (each === 'deaf') state.listening = !state.listening;
        else if (typeof each === 'number') {
          const piece = randomBytes(each);
          whole.push(piece);
          live.push(piece);
        }
      }
      state.listening = true;
      live.end();
      const all = Buffer.concat(whole);
      let end = 0;
      for (const { offset, content } of told) {
        expect(offset).toBeGreaterThanOrEqual(end);
        end = offset + content.length;
        expect(all.subarray(offset, end).equals(content)).toBe(true);
      }
      expect(end).toBe(all.length);
    }),
  );
});
