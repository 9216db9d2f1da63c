/** A host is deleted during a step that must not be stopped, such as one that writes firmware. */
import { create } from '@bufbuild/protobuf';
import { agent, HostGoal, RerunClass, RunKind, RunOutcome, RunPhase } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bench, done, driveToInspect, inspected, stepAt, verified } from '../testing/bench.ts';
import { callMs, force, normal, pass, runKind, statusOf } from '../testing/deleting.ts';

const steps = { tune: 'vendor.tune', flash: 'firmware.flash' } as const;

const runnerSteps = [steps.tune, steps.flash].map((name) =>
  create(agent.StepDescriptionSchema, {
    name,
    rerunClass: RerunClass.NEVER_TWICE,
    destructive: false,
    abortable: name !== steps.flash,
  }),
);

/** Stuck at `name`, with one step after it: its agent has been silent beyond the deadline. */
function stuckAt(name: string) {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, runnerSteps } };
  const listed = [name, steps.tune].map((step) => ({ step, arguments: {} }));
  host.request({ kind: 'clean', steps: listed });
  driveToInspect(host);
  host.report(inspected());
  expect(stepAt(host)).toBe(name);
  host.nowMs += host.snapshot.timing.contactDeadlineMs;
  return host;
}

const cancelled = expect.objectContaining({ kind: 'cancel' });

test.each([normal, force])('a step that may be stopped is cancelled at once ($mode)', (request) => {
  expect(stuckAt(steps.tune).request(request)).toContainEqual(cancelled);
});

test.each([normal, force])('a step that must not be stopped ends first ($mode)', (request) => {
  const host = stuckAt(steps.flash);
  expect(host.request(request)).not.toContainEqual(cancelled);
  expect(statusOf(host).run).toMatchObject({
    phase: expect.not.toSatisfy((phase: RunPhase) => phase === RunPhase.ENDED),
    abort: { reason: 'the host is to be deleted' },
  });
  expect(stepAt(host)).toBe(steps.flash);
  expect(pass(host, callMs / 2)).not.toContainEqual(cancelled);
  const { number } = statusOf(host).run ?? {};
  host.report(done);
  const ended = [...host.record.finishedRuns, statusOf(host).run].find(
    (run) => run?.number === number,
  );
  expect(ended).toMatchObject({ kind: RunKind.CLEAN, outcome: RunOutcome.CANCELLED });
  expect(ended?.steps.filter(({ name, attempt }) => name === steps.tune && attempt > 0)).toEqual(
    [],
  );
  expect([RunKind.DELETE, undefined]).toContain(runKind(host));
});
