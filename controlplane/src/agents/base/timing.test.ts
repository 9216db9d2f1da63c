/** What depends on the interval of an agent's heartbeats. */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { agentWordMs, defaultTiming, settleMs } from '../../host/index.ts';
import { quietMs } from '../hello/renewal.ts';
import { defaultSessionTiming } from './timing.ts';

const { heartbeatIntervalMs, idleHeartbeatIntervalMs, leaseDurationMs } = defaultSessionTiming;

test('a lease outlives a lost heartbeat by the time of an answer and more', () => {
  expect(2 * heartbeatIntervalMs).toBeLessThan(leaseDurationMs);
});

test('an agent that beats on time wakes no host, and a deadline fires between two beats', () => {
  expect(settleMs).toBeGreaterThan(heartbeatIntervalMs);
});

test('without work a deadline fires after one beat, without anybody who looks for it', () => {
  expect(agentWordMs + settleMs).toBeGreaterThan(idleHeartbeatIntervalMs);
});

test('the contact deadline outlives two beats without work that are lost', () => {
  expect(3 * idleHeartbeatIntervalMs).toBeLessThan(defaultTiming.contactDeadlineMs);
});

test('an agent is as silent as it said, and no more than it was allowed to', () => {
  const quietFor = (nextInMs: number) =>
    quietMs(create(agent.HeartbeatSchema, { nextInMs }), defaultSessionTiming);
  expect([0, 5_000, 12_000, 20_000, 4_000_000_000].map(quietFor)).toEqual([
    0, 0, 7_000, 15_000, 15_000,
  ]);
});
