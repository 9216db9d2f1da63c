import { create } from '@bufbuild/protobuf';
import {
  asRunNumber,
  type HostUid,
  type RunNumber,
  RunPhase,
  RunSchema,
  RunStepSchema,
  StepState,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { BegunDeployments } from './begun.ts';

const digest = 'sha256:b';
const [run4, run5] = [asRunNumber(4), asRunNumber(5)];
const uid: HostUid = 'h';

function writing(number: RunNumber, state: StepState): store.HostRecord {
  const steps = [create(RunStepSchema, { name: 'deploy.write_image', attempt: 1, state })];
  const run = create(RunSchema, { number, phase: RunPhase.RUNNING, steps });
  return create(store.HostRecordSchema, { host: { uid, status: { run } } });
}

test('a write that was under way when its agent died may have begun', () => {
  const begun = new BegunDeployments();
  begun.agentDied(writing(run4, StepState.RUNNING));
  expect(begun.mayHaveBegun(uid, run4, digest)).toBe(true);
  expect(begun.hasBegun(uid, run4, digest)).toBe(false);
  expect(begun.mayHaveBegun(uid, run5, digest)).toBe(false);
});

test('a write that had ended, or had not started, when its agent died has not begun', () => {
  const begun = new BegunDeployments();
  begun.agentDied(writing(run4, StepState.FAILED));
  begun.agentDied(writing(run5, StepState.PENDING));
  expect(begun.mayHaveBegun(uid, run4, digest)).toBe(false);
  expect(begun.mayHaveBegun(uid, run5, digest)).toBe(false);
});
