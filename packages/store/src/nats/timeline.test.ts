import type { StreamInfo } from '@nats-io/jetstream';
import { expect, test } from 'vitest';
import { hasBegun } from './timeline.ts';

/**
 * `active`: nanoseconds since the last message from the bucket; -1 when the server has led it
 * without one.
 */
function timelineAt(lastSeq: number, active: number): Parameters<typeof hasBegun>[0] {
  const state = { last_seq: lastSeq } as StreamInfo['state'];
  return { state, mirror: { name: 'KV_b', lag: 0, active } };
}

test('a timeline that has never heard of its bucket has not begun', () => {
  expect(hasBegun(timelineAt(0, -1))).toBe(false);
});

test('a timeline without changes has begun once it hears of its bucket', () => {
  expect(hasBegun(timelineAt(0, 1_000))).toBe(true);
});

test('a timeline that lost its bucket with a server has begun', () => {
  expect(hasBegun(timelineAt(7, -1))).toBe(true);
});
