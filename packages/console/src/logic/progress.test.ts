/** A run is as far as its steps are. */
import { create } from '@bufbuild/protobuf';
import { RunPhase, RunSchema, StepState } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { presentStep, progressOf } from './progress.ts';

const { SUCCEEDED, RUNNING, PENDING, SKIPPED } = StepState;
const run = (states: StepState[], phase: RunPhase = RunPhase.RUNNING) =>
  create(RunSchema, {
    phase,
    steps: states.map((state, at) => ({ name: `step${at}`, state })),
    currentStep: states.indexOf(RUNNING),
  });

test('steps count alike, the present one by its percent', () => {
  const half = run([SUCCEEDED, RUNNING, PENDING, PENDING]);
  expect(progressOf(half, 0)).toEqual({ done: 1, all: 4, percent: 25 });
  expect(progressOf(half, 50)).toEqual({ done: 1, all: 4, percent: 37 });
  expect(progressOf(half, 4_000).percent).toBe(50);
  expect(presentStep(half)?.name).toBe('step1');
});

test('skipped steps are over, handlers that nobody called are none', () => {
  const steps = [
    { name: 'a', state: SKIPPED },
    { name: 'b', state: PENDING, handler: true },
  ];
  expect(progressOf(create(RunSchema, { steps }), 0)).toMatchObject({ done: 1, all: 1 });
});

test('a run without steps is over or at its beginning', () => {
  expect(progressOf(run([], RunPhase.ENDED), 0).percent).toBe(100);
  expect(progressOf(run([]), 0).percent).toBe(0);
});
