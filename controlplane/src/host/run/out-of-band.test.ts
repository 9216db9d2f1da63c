/** Steps that the agent runs on the BMC, as a run orders them. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, HostGoal, RerunClass, RunOutcome, resetBmcStep } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bench, failed, statusOf, verified } from '../testing/bench.ts';

test('a restart of the BMC has more time than the agent waits for it', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const safe = { destructive: false, rerunClass: RerunClass.SAFE };
  const agentSteps = [create(agent.StepDescriptionSchema, { name: resetBmcStep, ...safe })];
  host.context = { ...host.context, agentSteps };
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
  host.context = { ...host.context, agentSteps };
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
