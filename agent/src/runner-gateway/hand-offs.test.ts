import { create } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { agent, type OperationId, runner as wire } from '@rackwright/messages';
import { afterMicrotasks, quietLog } from '@rackwright/platform/testing';
import { type Result, resultToWire } from '@rackwright/results';
import { expect, test } from 'vitest';
import type { HandOff, HandOffState, OperationContext } from '../session/index.ts';
import { defaultDispatcherLimits, RunnerDispatcher } from './dispatcher.ts';
import type { RunnerLink, RunnerOrder } from './link.ts';
import { testSigner } from './testing.ts';

const boot = 'boot-1';
const deadlineMs = 600_000;
const handOff: HandOff = {
  operationId: 'op',
  bootOperationId: boot,
  destructive: true,
  deadlineMs,
};

function setUp() {
  const clock = new VirtualClock();
  const session = {
    state: 'none' as HandOffState,
    boot: undefined as HandOff | undefined,
    lease: true,
    left: [] as string[],
    operation: 'begun' as 'begun' | 'ended' | 'unknown',
  };
  const dispatcher = new RunnerDispatcher({
    clock,
    log: quietLog,
    signer: testSigner(),
    operationState: () => session.operation,
    handOffs: {
      stateOf: () => session.state,
      ofBoot: (bootOperationId) => (bootOperationId === boot ? session.boot : undefined),
      ofHost: (hostUid) => (hostUid === 'uid' ? session.boot : undefined),
      isLeaseValid: () => session.lease,
      leaseLeftMs: () => (session.lease ? 9_000 : 0),
      noteLeaving: (hostUid) => session.left.push(hostUid),
    },
    limits: defaultDispatcherLimits,
  });
  const told: string[] = [];
  const link = (unreceived: readonly string[] = []): RunnerLink => ({
    bootOperationId: boot,
    hostUid: 'uid',
    runnerSession: 'session',
    steps: [],
    rescue: false,
    architecture: '',
    imageEndpoint: '',
    unreceived: new Set(unreceived),
    send: ({ case: kind, value }) => {
      if (kind === 'beginAnswer') told.push(`${value.answer?.case}: ${value.answer?.value}`);
      if (kind === 'order') told.push(`order ${value.operationId}`);
      if (kind !== 'reportReceived') return;
      told.push(`${value.handOff === true ? 'act' : 'received'} ${value.operationId}`);
    },
    close: () => {},
  });
  const says = (from: RunnerLink, result: Result): void => {
    const report = { operationId: 'op', result: resultToWire(result) };
    dispatcher.report(from, create(agent.ReportSchema, report), undefined);
  };
  return { clock, dispatcher, link, says, session, told };
}

function order(): RunnerOrder {
  const value = create(agent.RunStepSchema, {
    step: 'run.script',
    bootOperationId: boot,
    mode: agent.StepMode.RUN,
    destructive: true,
    handOff: true,
  });
  const kind = { case: 'runStep', value } as const;
  const operation = create(agent.OperationSchema, { id: 'op', hostUid: 'uid', kind });
  return { operation, bootOperationId: boot, order: kind };
}

const context: OperationContext = {
  signal: new AbortController().signal,
  begin: async () => {},
  reportProgress: () => {},
  credential: () => Promise.reject(new Error('no credential is needed')),
  isLeaseValid: () => true,
  leaseLeftMs: () => 9_000,
  brake: () => undefined,
  remainingMs: () => Infinity,
  openGrant: () => Promise.reject(new Error('no grant is opened')),
  closeGrants: async () => {},
};

async function settled(): Promise<void> {
  await afterMicrotasks(20);
}

/** Up to the report that the agent has written down. */
async function reported(rig: ReturnType<typeof setUp>): Promise<RunnerLink> {
  const runner = rig.link();
  rig.dispatcher.attach(runner);
  const result = rig.dispatcher.run(order(), context);
  await settled();
  rig.says(runner, { kind: 'complete' });
  expect(await result).toEqual({ kind: 'complete' });
  rig.session.state = 'pending';
  rig.session.operation = 'ended';
  rig.dispatcher.noteReportDurable('op');
  return runner;
}

test('the runner may act only once the control plane has answered', async () => {
  const rig = setUp();
  await reported(rig);
  expect(rig.told).toEqual(['order op']);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.dispatcher.handOffAnswered(handOff, true);
  expect(rig.told).toEqual(['order op', 'act op']);
  expect(rig.session.left).toEqual(['uid']);
});

test('a hand-off that the control plane does not apply never acts', async () => {
  const rig = setUp();
  await reported(rig);
  rig.session.state = 'none';
  rig.dispatcher.handOffAnswered(handOff, false);
  expect(rig.told).toEqual(['order op', 'received op']);
});

test('a runner that was away when it was answered is told when it comes back', async () => {
  const rig = setUp();
  const runner = await reported(rig);
  rig.dispatcher.detach(runner);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.dispatcher.handOffAnswered(handOff, true);
  expect(rig.told).toEqual(['order op']);
  const again = rig.link(['op']);
  rig.dispatcher.attach(again);
  rig.says(again, { kind: 'complete' });
  expect(rig.told).toEqual(['order op', 'act op']);
});

test('after a restart of the agent nothing acts before the answer, and then it does', () => {
  const rig = setUp();
  rig.session.operation = 'ended';
  rig.session.state = 'pending';
  const runner = rig.link(['op']);
  rig.dispatcher.attach(runner);
  rig.says(runner, { kind: 'complete' });
  expect(rig.told).toEqual([]);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.dispatcher.handOffAnswered(handOff, true);
  expect(rig.told).toEqual(['act op']);
});

test('the hand-off of an operation that is no longer known never acts', () => {
  const rig = setUp();
  rig.session.operation = 'unknown';
  const runner = rig.link(['op']);
  rig.dispatcher.attach(runner);
  rig.says(runner, { kind: 'complete' });
  expect(rig.told).toEqual(['received op']);
});

test('a destructive one waits for the work lease', async () => {
  const rig = setUp();
  await reported(rig);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.session.lease = false;
  rig.dispatcher.handOffAnswered(handOff, true);
  rig.dispatcher.handOffAnswered(handOff, true);
  rig.clock.step();
  expect(rig.told).toEqual(['order op']);
  rig.session.lease = true;
  rig.clock.step();
  expect(rig.told).toEqual(['order op', 'act op']);
});

test('a hand-off that waits for the work lease beyond its time never acts', async () => {
  const rig = setUp();
  await reported(rig);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.session.lease = false;
  rig.dispatcher.handOffAnswered(handOff, true);
  while (rig.clock.nowMs() < deadlineMs && rig.clock.step());
  expect(rig.told).toEqual(['order op', 'received op']);
  rig.session.lease = true;
  rig.clock.step();
  expect(rig.told).toEqual(['order op', 'received op']);
  expect(rig.dispatcher.handOffUnderWay('uid')).toBeUndefined();
  expect(rig.session.left).toEqual(['uid']);
});

test('a runner that comes back after the time of its hand-off is not told to act', async () => {
  const rig = setUp();
  const runner = await reported(rig);
  rig.dispatcher.detach(runner);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.dispatcher.handOffAnswered(handOff, true);
  rig.clock.after(deadlineMs, () => {});
  while (rig.clock.nowMs() < deadlineMs && rig.clock.step());
  const again = rig.link(['op']);
  rig.dispatcher.attach(again);
  rig.says(again, { kind: 'complete' });
  expect(rig.told).toEqual(['order op', 'received op']);
});

test('the boot takes no other order, though its runner may be there still', async () => {
  const rig = setUp();
  await reported(rig);
  rig.session.boot = handOff;
  expect(await rig.dispatcher.run(order(), context)).toEqual({
    kind: 'retryAfter',
    reason: 'invalidState',
    message: 'boot boot-1 is over, boot the host again: step op has taken its runner away',
    delayMs: 0,
  });
});

test('other work waits until the runner is told, and not for ever', async () => {
  const rig = setUp();
  const runner = await reported(rig);
  expect(rig.dispatcher.handOffUnderWay('uid')).toBeUndefined();
  rig.dispatcher.detach(runner);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  rig.dispatcher.handOffAnswered(handOff, true);
  expect(rig.dispatcher.handOffUnderWay('uid')).toBe('op');
  expect(rig.dispatcher.handOffUnderWay('another')).toBeUndefined();
  rig.clock.after(defaultDispatcherLimits.handOffWaitMs, () => {});
  while (rig.dispatcher.handOffUnderWay('uid') === 'op' && rig.clock.step());
  expect(rig.clock.suspendAwareMs()).toBe(defaultDispatcherLimits.handOffWaitMs);
  expect(rig.dispatcher.handOffUnderWay('uid')).toBeUndefined();
});

test('once the runner says that it acts, nothing waits for it', async () => {
  const rig = setUp();
  const runner = await reported(rig);
  rig.session.state = 'released';
  rig.session.boot = handOff;
  expect(rig.dispatcher.handOffUnderWay('uid')).toBe('op');
  rig.dispatcher.handOffAnswered(handOff, true);
  expect(rig.dispatcher.handOffUnderWay('uid')).toBe('op');
  rig.says(runner, { kind: 'continuing', step: 'run.script', text: 'takes the runner away' });
  expect(rig.dispatcher.handOffUnderWay('uid')).toBeUndefined();
});

test('a hand-off that took time to prepare destroys only under a current lease', async () => {
  const rig = setUp();
  const runner = await reported(rig);
  rig.session.boot = handOff;
  const ask = (operationId: OperationId): string | undefined => {
    rig.dispatcher.answerBegin(
      runner,
      create(wire.AskToBeginSchema, { operationId, sequence: 1n }),
    );
    return rig.told.pop();
  };
  expect(ask('op')).toBe('granted: true');
  rig.session.lease = false;
  expect(ask('op')).toBe('wait: waits for the work lease');
  expect(ask('another')).toBe('over: the agent waits for it no more');
  rig.clock.after(deadlineMs, () => {});
  while (rig.clock.step());
  rig.session.lease = true;
  expect(ask('op')).toBe('over: its time is over');
});
