import { create } from '@bufbuild/protobuf';
import { agent, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { StepProgress } from './progress.ts';
import { createSessionRegistry, type LiveSession } from './sessions.ts';

const recordOf = (id: string) =>
  create(wire.HostRecordSchema, { operation: { operation: { id } } });

test('progress is told when it is kept, and when it is dropped with its operation', () => {
  const progress = new StepProgress();
  const told: string[] = [];
  const cancel = progress.onChange((hostId) => told.push(hostId));
  progress.keep('h1', recordOf('u/1/1'), create(agent.ContinuingSchema, { percent: 10 }), 0);
  expect(told).toEqual(['h1']);
  progress.settle('h1', recordOf('u/1/1'));
  progress.settle('h2', recordOf('u/1/1'));
  progress.drop('h2');
  expect(told).toEqual(['h1']);
  progress.settle('h1', recordOf('u/1/2'));
  expect(told).toEqual(['h1', 'h1']);
  cancel();
  progress.keep('h1', recordOf('u/1/2'), create(agent.ContinuingSchema, { percent: 20 }), 0);
  expect(told).toEqual(['h1', 'h1']);
});

test('a rack’s agent is told when it comes and when it goes, until nobody listens', () => {
  const registry = createSessionRegistry();
  const told: string[] = [];
  const cancel = registry.onChange((rackId) => told.push(rackId));
  const session = { rackId: 'r1', end: () => undefined } as LiveSession;
  registry.open(session);
  registry.close(session);
  expect(told).toEqual(['r1', 'r1']);
  cancel();
  registry.open(session);
  expect(told).toEqual(['r1', 'r1']);
});
