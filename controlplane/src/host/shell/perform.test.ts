import { create } from '@bufbuild/protobuf';
import { agent, HostSchema, unavailable, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import type { EngineTiming } from '../pass/timing.ts';
import type { HostsDependencies } from './dependencies.ts';
import { EffectPerformer, type PerformingParts } from './perform.ts';
import type { SessionRegistry } from './sessions.ts';

const operation = create(agent.OperationSchema, { id: 'op-1', hostUid: 'uid-1' });
const record = create(wire.HostRecordSchema, {
  host: create(HostSchema, { name: 'hosts/h1', spec: { rack: 'racks/r1' } }),
});

/** Sending fails, and so does the record of that failure, `times` times. */
async function sendWithout(recording: unknown, times = 1) {
  const told: unknown[] = [];
  const delays: number[] = [];
  const note = (...line: unknown[]) => void told.push(line.at(-1));
  const clock: Clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (delayMs, then) => {
      delays.push(delayMs);
      if (delays.length < times) setImmediate(then);
      return () => {};
    },
  };
  const sessionOf = () => {
    throw sending;
  };
  const registry = { sessionOf } as Partial<SessionRegistry> as SessionRegistry;
  const timing = { retryDelayMs: 1_000, retryDelayMaxMs: 60_000 } as EngineTiming;
  const log = { ...quietLog, error: note, warn: note };
  const deps: Partial<HostsDependencies> = { log, clock, timing, registry };
  const controller: PerformingParts['controller'] = {
    signal: new AbortController().signal,
    take: <T>() => Promise.reject<T>(recording),
  };
  const post = () => Promise.reject(recording);
  const parts: Partial<PerformingParts> = { post, controller };
  const performing = new EffectPerformer(deps as HostsDependencies, parts as PerformingParts);
  await performing.perform('h1', record, { kind: 'send', operation });
  await expect.poll(() => delays.length).toBe(times);
  return { told, delays };
}

const sending = new Error('the session is broken');

test('an operation that is not sent yet is logged with the error, and is tried again', async () => {
  const damaged = new Error('the record is damaged');
  expect((await sendWithout(damaged)).told).toEqual([sending, damaged]);
});

test('an operation is tried again without a log line while the store is away', async () => {
  const away = unavailable('STORE_UNAVAILABLE', 'come again');
  expect((await sendWithout(away)).told).toEqual([sending]);
});

test('an operation is tried again after pauses that double up to the longest', async () => {
  const { delays } = await sendWithout(new Error('the record is damaged'), 12);
  for (const [index, delayMs] of delays.entries()) {
    const wholeMs = Math.min(1_000 * 2 ** index, 60_000);
    expect(delayMs).toBeGreaterThanOrEqual(wholeMs * 0.75);
    expect(delayMs).toBeLessThanOrEqual(wholeMs);
  }
});
