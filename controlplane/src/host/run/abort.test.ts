/** Aborts during a dropped link: aborted work never begins afterwards. */
import { agent, HostGoal, RunOutcome, RunPhase } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { fleetKey } from '../fleet/followed.ts';
import { failed } from '../testing/bench.ts';
import { connectAgent } from '../testing/plain-agent.ts';
import { type Rig, rigWith } from '../testing/rig.ts';

const { JOURNALLED, BEGUN } = agent.JournalledOperation_State;
const manageable = { goal: HostGoal.MANAGEABLE };
const abort = { kind: 'abort', reason: 'wrong host' } as const;
const first = 'u1/1/0/1';

/** The verify has been sent, the link has dropped, and the abort came during that. */
async function abortedWhileAway() {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const before = await connectAgent(rig, replica);
  expect(before.ids()).toEqual([first]);
  await before.cut();
  expect((await replica.request(abort)).kind).toBe('accepted');
  expect(rig.status().run?.phase).not.toBe(RunPhase.ENDED);
  return { rig, replica };
}

const outcome = (rig: Rig) => rig.status().run?.outcome;

test('an order of an aborted run that its agent never got is not sent again', async () => {
  const { rig, replica } = await abortedWhileAway();
  const after = await connectAgent(rig, replica);
  expect(after.ids()).toEqual([]);
  expect(outcome(rig)).toBe(RunOutcome.CANCELLED);
  expect(rig.record().operation).toBeUndefined();
});

test('an order that the agent has not begun is cancelled before it is brought again', async () => {
  const { rig, replica } = await abortedWhileAway();
  const operations = [{ operationId: first, hostUid: 'u1', state: JOURNALLED }];
  const after = await connectAgent(rig, replica, { operations });
  const { CANCEL } = agent.Directive_Action;
  expect(after.of('welcome')[0]?.directives.map(({ action }) => action)).toEqual([CANCEL]);
  expect(after.ids()).toEqual([`${first}/cancel`, first]);
});

test('an aborted operation that is journalled is cancelled, however late the agent', async () => {
  const { rig, replica } = await abortedWhileAway();
  await rig.advance(3_600_000);
  const operations = [{ operationId: first, hostUid: 'u1', state: JOURNALLED }];
  const after = await connectAgent(rig, replica, { operations });
  expect(after.ids().filter((id) => !id.startsWith(first))).toEqual([]);
  expect(outcome(rig)).toBe(RunOutcome.CANCELLED);
});

test('an abort between Welcome and the opening of the session is not lost', async () => {
  const rig = rigWith(manageable);
  let slowBootList = false;
  const replica = await rig.replica({
    faults: async ({ kind, key }) => {
      // Of all messages after Welcome, only the boot list reads the fleet's record.
      if (slowBootList && kind === 'get' && key === fleetKey) {
        await new Promise<void>((resolve) => rig.clock.after(500, resolve));
      }
      return { kind: 'none' };
    },
  });
  const before = await connectAgent(rig, replica);
  await before.cut();
  slowBootList = true;
  const operations = [{ operationId: first, hostUid: 'u1', state: BEGUN }];
  const after = await connectAgent(rig, replica, { operations }, 100);
  expect(after.received.map((message) => message.case)).toEqual(['welcome']);
  expect(replica.hosts.isAgentConnected('r1')).toBe(false);
  expect((await replica.request(abort)).kind).toBe('accepted');
  await rig.advance(1_000);
  expect(replica.hosts.isAgentConnected('r1')).toBe(true);
  expect(after.ids()[0]).toBe(`${first}/cancel`);
  await after.report(failed('cancelled'), { id: first, hostUid: 'u1' });
  expect(outcome(rig)).toBe(RunOutcome.CANCELLED);
});

test('an abort while the agent waits for its slot ends the run when it says so', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await replica.request(abort);
  expect(plain.ids()).toEqual([first, `${first}/cancel`]);
  expect(outcome(rig)).not.toBe(RunOutcome.CANCELLED);
  await plain.report(failed('cancelled'));
  expect(outcome(rig)).toBe(RunOutcome.CANCELLED);
});
