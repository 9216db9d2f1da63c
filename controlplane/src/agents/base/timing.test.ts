/** What rests on how often an agent beats. */
import { expect, test } from 'vitest';
import { settleMs } from '../../host/index.ts';
import { defaultSessionTiming } from './timing.ts';

const { heartbeatIntervalMs, leaseDurationMs } = defaultSessionTiming;

test('a lease outlives two heartbeats that are lost', () => {
  expect(3 * heartbeatIntervalMs).toBeLessThanOrEqual(leaseDurationMs);
});

test('an agent that beats on time wakes no host, and a deadline fires between two beats', () => {
  expect(settleMs).toBeGreaterThan(heartbeatIntervalMs);
});
