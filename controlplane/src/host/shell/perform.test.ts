import { create } from '@bufbuild/protobuf';
import { agent, HostSchema, unavailable, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import type { EngineTiming } from '../pass/timing.ts';
import type { HostsDependencies } from './dependencies.ts';
import { Performing, type PerformingParts } from './perform.ts';
import type { SessionRegistry } from './sessions.ts';

const operation = create(agent.OperationSchema, { id: 'op-1', hostUid: 'uid-1' });
const record = create(wire.HostRecordSchema, {
  host: create(HostSchema, { name: 'hosts/h1', spec: { rack: 'racks/r1' } }),
});

/** Sending fails, and so does the record of that failure. */
async function sendWithout(recording: unknown) {
  const told: unknown[] = [];
  const delays: number[] = [];
  const note = (...line: unknown[]) => void told.push(line.at(-1));
  const clock: Clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (delayMs) => {
      delays.push(delayMs);
      return () => {};
    },
  };
  const sessionOf = () => {
    throw sending;
  };
  const registry = { sessionOf } as Partial<SessionRegistry> as SessionRegistry;
  const timing = { retryDelayMs: 7 } as EngineTiming;
  const log = { ...quietLog, error: note, warn: note };
  const deps: Partial<HostsDependencies> = { log, clock, timing, registry };
  const parts: Partial<PerformingParts> = { post: () => Promise.reject(recording) };
  const performing = new Performing(deps as HostsDependencies, parts as PerformingParts);
  await performing.perform('h1', record, { kind: 'send', operation });
  await new Promise((resolve) => setImmediate(resolve));
  return { told, delays };
}

const sending = new Error('the session is broken');

test('an operation that is not sent yet is logged with the error, and is tried again', async () => {
  const damaged = new Error('the record is damaged');
  expect(await sendWithout(damaged)).toEqual({ told: [sending, damaged], delays: [7] });
});

test('an operation is tried again without a log line while the store is away', async () => {
  const away = unavailable('STORE_UNAVAILABLE', 'come again');
  expect(await sendWithout(away)).toEqual({ told: [sending], delays: [7] });
});
