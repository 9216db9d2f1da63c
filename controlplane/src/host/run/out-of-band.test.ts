/** Steps that the agent runs on the BMC, as a run orders them. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, HostGoal, RerunClass, RunOutcome, resetBmcStep } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { WorkflowStep } from '../pass/types.ts';
import { type Bench, bench, failed, statusOf, verified } from '../testing/bench.ts';
import { passOrder, rendered, startOn, told, workable } from '../testing/templates.ts';

test('a restart of the BMC has more time than the agent waits for it', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const safe = { destructive: false, rerunClass: RerunClass.SAFE };
  const agentSteps = [create(agent.StepDescriptionSchema, { name: resetBmcStep, ...safe })];
  host.snapshot = { ...host.snapshot, agentSteps };
  host.request({ kind: 'service', steps: [{ step: resetBmcStep, arguments: {} }] });
  const { deadline } = host.operation();
  // A minute until it falls silent, ten until it is back.
  const waitsMs = 11 * 60_000;
  expect(timestampMs(deadline ?? timestampFromMs(0)) - host.nowMs).toBeGreaterThan(waitsMs);
});

test('an update of firmware has hours, and what was cut short is only looked at', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const step = 'firmware.update';
  const rerunClass = RerunClass.CHECK_FIRST;
  const agentSteps = [
    create(agent.StepDescriptionSchema, { name: step, destructive: false, rerunClass }),
  ];
  host.snapshot = { ...host.snapshot, agentSteps };
  host.request({ kind: 'service', steps: [{ step, arguments: {} }] });
  const ordered = host.operation();
  const hours = (timestampMs(ordered.deadline ?? timestampFromMs(0)) - host.nowMs) / 3_600_000;
  expect(hours).toBe(2);
  const modeOf = ({ kind }: agent.Operation) => kind.case === 'runStep' && kind.value.mode;
  expect(modeOf(ordered)).toBe(agent.StepMode.RUN);
  host.report(failed('interrupted', 'the agent was started anew'));
  expect(host.operation().id).not.toBe(ordered.id);
  expect(modeOf(host.operation())).toBe(agent.StepMode.CHECK);
  host.report(failed('notApplied', 'the component reads its old version'));
  expect(statusOf(host).run?.outcome).toBe(RunOutcome.FAILED);
});

/** A run whose template orders an update of firmware, with one attempt more. */
function flashing(more: Partial<WorkflowStep> = {}): Bench {
  const host = workable();
  const step = 'firmware.update';
  const rerunClass = RerunClass.CHECK_FIRST;
  const agentSteps = [
    create(agent.StepDescriptionSchema, { name: step, destructive: false, rerunClass }),
  ];
  host.snapshot = { ...host.snapshot, agentSteps };
  startOn(host, [rendered('flash', step, { retries: 1, rerunClass, ...more })]);
  return host;
}

test('retries order no update again that the BMC may still be carrying out', () => {
  const host = flashing();
  host.report(failed('stillPending', 'the BMC takes its time'));
  expect(told(host)).toEqual(['flash failed']);
  expect(statusOf(host).run?.outcome).toBe(RunOutcome.FAILED);
});

test('retries order no update again that was cut short and is not seen', () => {
  const host = flashing();
  host.report(failed('interrupted', 'the agent was started anew'));
  host.report(failed('notApplied', 'the component reads its old version'));
  expect(told(host)).toEqual(['flash failed']);
});

test('retries order no update again that nobody has reported in its time', () => {
  const host = flashing();
  passOrder(host, 2 * 3_600_000);
  expect(statusOf(host).run?.outcome).toBe(RunOutcome.TIMED_OUT);
});

test('a failed update of firmware that its template holds is ordered again by a person', () => {
  const host = flashing({ onFailure: 'hold' });
  const { id } = host.operation();
  host.report(failed('stillPending', 'the BMC takes its time'));
  expect(host.record.operation).toBeUndefined();
  host.request({ kind: 'resume', reason: 'its old version is still there' });
  expect(host.operation().id).not.toBe(id);
});
