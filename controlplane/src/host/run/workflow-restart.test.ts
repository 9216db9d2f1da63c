/** Restarts of control plane and agent during a hand-off: it is never begun twice (L7, L9). */
import {
  agent,
  asWorkflowUid,
  HostGoal,
  RunOutcome,
  type store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bootOfRunner, failed } from '../testing/bench.ts';
import {
  complete,
  connectAgent,
  type PlainAgent,
  proved,
  toInspect,
} from '../testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../testing/rig.ts';
import { script, workflowRun } from '../testing/templates.ts';

const { BEGUN, ENDED } = agent.JournalledOperation_State;
const steps = [script('kexec', { handOff: true })];
const asked = {
  kind: 'workflow',
  workflowRun,
  workflowUid: asWorkflowUid('w1'),
  templateDigest: 'd1',
  timeoutMs: undefined,
} as const;

interface HandOffScene {
  readonly rig: Rig;
  readonly replica: Replica;
  readonly plain: PlainAgent;
  /** The hand-off's operation. */
  readonly id: string;
}

/** The hand-off has been ordered, and the agent has it. */
async function ordered(): Promise<HandOffScene> {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await replica.request({ ...asked, steps });
  await toInspect(rig, plain);
  const { id, kind } = plain.last();
  expect(kind.case === 'runStep' && kind.value.handOff).toBe(true);
  return { rig, replica, plain, id };
}

const ended = (rig: Rig) => rig.status().run?.outcome;
const operationRecord = (rig: Rig): wire.OperationRecord | undefined => rig.record().operation;

test('a control plane that restarts hears the completion that the agent has kept', async () => {
  const { rig, replica, id } = await ordered();
  replica.kill();
  const after = await rig.replica();
  const operations = [{ operationId: id, hostUid: 'u1', state: ENDED }];
  const again = await connectAgent(rig, after, { operations });
  await again.report(complete(), { id, hostUid: 'u1' });
  expect(ended(rig)).toBe(RunOutcome.SUCCEEDED);
});

test('L7: an order that never reached the agent is sent again under its own id', async () => {
  const { rig, replica, id } = await ordered();
  replica.kill();
  const after = await rig.replica();
  const again = await connectAgent(rig, after);
  expect(again.ids()).toEqual([id]);
  await again.report(complete(), { id, hostUid: 'u1' });
  expect(ended(rig)).toBe(RunOutcome.SUCCEEDED);
});

test('killed right after the order was stored, it is sent under the id that stands', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await replica.request({ ...asked, steps });
  await plain.report(complete());
  await plain.report(complete());
  replica.kill();
  const dying = await rig.replica({ crashAt: 'cp.operationStored' });
  const bootOperationId = bootOfRunner(rig.status().run);
  const ready = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
  await connectAgent(rig, dying, { runners: [ready] });
  const { id = '', kind } = operationRecord(rig)?.operation ?? {};
  expect(kind?.case === 'runStep' && kind.value.handOff).toBe(true);
  const after = await rig.replica();
  const third = await connectAgent(rig, after);
  expect(third.ids()).toEqual([id]);
});

test('L9: after an agent was restarted and cut it short, a person decides', async () => {
  const { rig, plain, replica, id } = await ordered();
  await plain.cut();
  const journal = { id: 'j1', generation: 2n };
  const operations = [{ operationId: id, hostUid: 'u1', state: BEGUN }];
  const again = await connectAgent(rig, replica, { journal, operations });
  await again.report(failed('interrupted'), { id, hostUid: 'u1' });
  await rig.advance(3_600_000);
  expect(rig.status().run?.waiting?.reason).toBe('hold');
  expect(operationRecord(rig)).toBeUndefined();
  expect(again.ids().filter((each) => each !== id)).toEqual([]);
  await replica.request({ kind: 'skip', reason: 'the new kernel is up' });
  expect(ended(rig)).toBe(RunOutcome.SUCCEEDED);
});

test('L9: with its journal lost nothing is sent to the agent', async () => {
  const { rig, plain, replica, id } = await ordered();
  await plain.cut();
  const again = await connectAgent(rig, replica, { journal: { id: 'j2', generation: 1n } });
  expect(again.ids()).toEqual([]);
  expect(rig.status().run?.waiting?.reason).toBe('hold');
  const { run } = rig.status();
  await again.report(complete(), { id, hostUid: 'u1' });
  expect(rig.status().run).toEqual(run);
});
