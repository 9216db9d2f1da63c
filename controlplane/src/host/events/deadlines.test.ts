/** Stored deadlines over an interrupted session (R5): silence alone fails nothing. */

import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, HostGoal, RunOutcome, RunPhase, TransientCause } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { agentBackMs, agentWordMs } from '../operation/operation.ts';
import { defaultTiming } from '../pass/timing.ts';
import {
  type Bench,
  bench,
  driveToErase,
  driveToInspect,
  inspected,
  statusOf,
  verified,
} from '../testing/bench.ts';
import { complete, connectAgent, proved } from '../testing/plain-agent.ts';
import { type Rig, rigWith } from '../testing/rig.ts';
import { bmcStep, passOrder, rendered, startOn, workable } from '../testing/templates.ts';

const { JOURNALLED, BEGUN, ENDED } = agent.JournalledOperation_State;
const manageable = { goal: HostGoal.MANAGEABLE };
const first = 'u1/1/0/1';
const { operationTimeoutMs, bootTimeoutMs } = defaultTiming;

/** The verify has been sent, the link has dropped, and its time is over. */
async function overWhileAway() {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const before = await connectAgent(rig, replica);
  await before.cut();
  await rig.advance(2 * operationTimeoutMs);
  expect(rig.status().run?.phase).toBe(RunPhase.WAITING);
  return { rig, replica };
}

const outcome = (rig: Rig) => rig.status().run?.outcome;

test.each([
  ['that never reached the agent', []],
  ['that the agent had not begun', [{ operationId: first, hostUid: 'u1', state: JOURNALLED }]],
])('an operation %s gets a new attempt with time of its own', async (_text, operations) => {
  const { rig, replica } = await overWhileAway();
  const after = await connectAgent(rig, replica, { operations });
  expect(after.ids()).toEqual(['u1/1/0/2']);
  const deadline = after.last().deadline ?? timestampFromMs(0);
  const leftMs = timestampMs(deadline) - rig.clock.nowMs();
  expect(leftMs).toBeGreaterThan(operationTimeoutMs - 1_000);
  await after.report(proved());
  expect(outcome(rig)).toBe(RunOutcome.SUCCEEDED);
});

describe('an operation that had begun', () => {
  async function backAgain() {
    const { rig, replica } = await overWhileAway();
    const operations = [{ operationId: first, hostUid: 'u1', state: BEGUN }];
    const after = await connectAgent(rig, replica, { operations });
    return { rig, after };
  }

  test('counts with a result that its agent had ready when it was back', async () => {
    const { rig, after } = await backAgain();
    await after.beat(12_000);
    await after.report(proved(), { id: first, hostUid: 'u1' });
    expect(outcome(rig)).toBe(RunOutcome.SUCCEEDED);
  });

  test('has had its time where its agent says nothing of it once it is back', async () => {
    const { rig, after } = await backAgain();
    await after.beat(agentBackMs - 6_000);
    expect(rig.status().run?.phase).not.toBe(RunPhase.ENDED);
    await after.beat(12_000);
    expect(outcome(rig)).toBe(RunOutcome.TIMED_OUT);
  });
});

test('the word of an agent that stops an operation itself comes before ours', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.beat(operationTimeoutMs + 6_000);
  expect(rig.status().run?.phase).toBe(RunPhase.RUNNING);
  await plain.report(proved());
  expect(outcome(rig)).toBe(RunOutcome.SUCCEEDED);
});

test('a result that Hello announces counts, however late it comes', async () => {
  const { rig, replica } = await overWhileAway();
  const operations = [{ operationId: first, hostUid: 'u1', state: ENDED }];
  const after = await connectAgent(rig, replica, { operations });
  expect(rig.status().run?.phase).not.toBe(RunPhase.ENDED);
  await after.report(proved(), { id: first, hostUid: 'u1' });
  expect(outcome(rig)).toBe(RunOutcome.SUCCEEDED);
});

test('a pass that began before the agent was back does not judge by its silence', async () => {
  const rig = rigWith(manageable);
  let slowRead = false;
  const replica = await rig.replica({
    faults: async ({ kind, key }) => {
      if (slowRead && kind === 'get' && key === 'hosts.h1') {
        slowRead = false;
        await new Promise<void>((resolve) => rig.clock.after(500, resolve));
      }
      return { kind: 'none' };
    },
  });
  const before = await connectAgent(rig, replica);
  await before.cut();
  await rig.advance(2 * operationTimeoutMs);
  slowRead = true;
  replica.hosts.wake('h1');
  const after = await connectAgent(rig, replica, {}, 100);
  expect(replica.hosts.isAgentConnected('r1')).toBe(true);
  expect(after.ids()).toEqual([]);
  await rig.advance(1_000);
  expect(after.ids()).toEqual(['u1/1/0/2']);
});

test('a boot grant counts from when the order goes out, however long that took', async () => {
  const rig = rigWith({});
  const replica = await rig.replica();
  const before = await connectAgent(rig, replica);
  await before.report(proved());
  await before.report(complete());
  const silent = create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'no answer',
  });
  await before.report({ case: 'transientError', value: silent });
  await before.cut();
  await rig.advance(2 * bootTimeoutMs);
  const after = await connectAgent(rig, replica);
  const { kind, id } = after.last();
  expect(id).toBe('u1/2/1/2');
  if (kind.case !== 'setPower') throw new Error('the boot was to be ordered');
  const leftMs = timestampMs(kind.value.grantExpireTime ?? timestampFromMs(0)) - rig.clock.nowMs();
  expect(leftMs).toBeGreaterThan(bootTimeoutMs - 1_000);
});

test('a deadline that passes between two heartbeats fires with the next one', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.beat(operationTimeoutMs + agentWordMs - 3_000);
  expect(rig.status().run?.phase).toBe(RunPhase.RUNNING);
  await plain.beat(12_000);
  expect(outcome(rig)).toBe(RunOutcome.TIMED_OUT);
});

test('an operation past its deadline is cancelled: its agent’s clock may differ', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.beat(operationTimeoutMs + agentWordMs + 12_000);
  expect(outcome(rig)).toBe(RunOutcome.TIMED_OUT);
  expect(plain.ids()).toContain(`${first}/cancel`);
});

test('a deadline that passes while a session is silent fires with its next heartbeat', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.beat(operationTimeoutMs - 30_000);
  await rig.advance(120_000);
  expect(rig.status().run?.phase).toBe(RunPhase.RUNNING);
  await plain.heartbeat();
  await rig.advance(3_000);
  expect(outcome(rig)).toBe(RunOutcome.TIMED_OUT);
});

test('a runner that never comes up ends its run soon after the boot time is over', async () => {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await plain.report(complete());
  await plain.report(complete());
  await plain.beat(bootTimeoutMs + 9_000);
  expect(outcome(rig)).toBe(RunOutcome.TIMED_OUT);
  expect(rig.status().run?.error?.message).toContain('no runner reported');
});

describe('the time of the whole run', () => {
  const dayMs = 24 * 3_600_000;
  const runOf = (host: Bench) => {
    const run = host.record.host?.status?.run;
    if (run === undefined) throw new Error('no run');
    return run;
  };
  const leftMs = (host: Bench) =>
    timestampMs(runOf(host).deadline ?? timestampFromMs(0)) - host.nowMs;
  const passWeeks = (host: Bench) => {
    for (let day = 0; day < 20; day++) {
      host.nowMs += dayMs;
      const session = host.snapshot.session;
      if (session === undefined) throw new Error('no session');
      host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
      host.apply({ kind: 'tick' });
    }
  };

  test('does not run out while everything is frozen, and goes on after the thaw', () => {
    const host = bench();
    const freeze = { of: 'racks/r1', by: 'user:ann', reason: 'a drill', at: undefined };
    host.snapshot = { ...host.snapshot, freeze };
    driveToErase(host);
    const before = leftMs(host);
    passWeeks(host);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'freeze' } });
    host.snapshot = { ...host.snapshot, freeze: undefined };
    host.apply({ kind: 'tick' });
    expect(runOf(host).phase).toBe(RunPhase.RUNNING);
    expect(leftMs(host)).toBe(before);
  });

  test('does not run out in the queue for a slot', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    const quota = { kind: 'atOnce', hosts: 1 } as const;
    const full = { name: 'runner', quota, own: [], nextSlotMs: undefined } as const;
    host.snapshot = { ...host.snapshot, quotaViews: [full] };
    host.report(verified());
    const before = leftMs(host);
    passWeeks(host);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'capacity' } });
    host.snapshot = { ...host.snapshot, quotaViews: [] };
    host.apply({ kind: 'tick' });
    expect(runOf(host).phase).toBe(RunPhase.RUNNING);
    expect(leftMs(host)).toBe(before);
  });

  test('does not run out at a hold that the list of steps asks for', () => {
    const host = bench(manageable);
    host.apply({ kind: 'tick' });
    host.report(verified());
    const steps = ['hold', 'reboot'].map((step) => ({ step, arguments: {} }));
    host.request({ kind: 'clean', steps });
    driveToInspect(host);
    host.report(inspected());
    const before = leftMs(host);
    passWeeks(host);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'hold' } });
    host.request({ kind: 'resume', reason: '' });
    expect(runOf(host).phase).toBe(RunPhase.RUNNING);
    expect(leftMs(host)).toBe(before);
  });
});

test('a run that is over its time says which time that was, and where it stood', () => {
  const limitMs = 60_000;
  const workflow = workable();
  startOn(workflow, [rendered('burn in', bmcStep)], limitMs);
  passOrder(workflow, limitMs);
  const verify = bench(manageable);
  verify.apply({ kind: 'tick' });
  const { run } = statusOf(verify);
  if (run !== undefined) run.deadline = timestampFromMs(verify.nowMs + limitMs);
  passOrder(verify, limitMs);
  expect([workflow, verify].map((host) => statusOf(host).run?.error?.message)).toEqual([
    'the run took too long, at burn in',
    'the run waited too long, at bmc.verifyAccess',
  ]);
});
