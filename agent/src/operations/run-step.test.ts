/** Orders for a runner that does not offer the step (R8); the agent goes on. */
import { create } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { agent } from '@rackwright/messages';
import { afterMicrotasks, quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { defaultDispatcherLimits, noHandOffs, RunnerDispatcher } from '../runner-gateway/index.ts';
import { testSigner } from '../runner-gateway/testing.ts';
import type { OperationContext } from '../session/index.ts';
import { runStep } from './run-step.ts';

const boot = 'h/1/1/1';

function setUp() {
  const dispatcher = new RunnerDispatcher({
    clock: new VirtualClock(),
    log: quietLog,
    signer: testSigner(),
    operationState: () => 'begun',
    handOffs: noHandOffs,
    limits: defaultDispatcherLimits,
  });
  const sent: string[] = [];
  let begun = 0;
  const link = {
    bootOperationId: boot,
    hostUid: 'h',
    runnerSession: 's',
    steps: ['deploy.erase_devices', 'run.script'],
    rescue: false,
    architecture: '',
    imageEndpoint: '',
    unreceived: new Set<string>(),
    send: ({ case: kind }: { readonly case?: string | undefined }) => {
      sent.push(String(kind));
    },
    close: () => {},
  };
  dispatcher.attach(link);
  const context: OperationContext = {
    signal: new AbortController().signal,
    begin: async () => {
      begun += 1;
    },
    reportProgress: () => {},
    credential: () => Promise.reject(new Error('no credential is needed')),
    isLeaseValid: () => true,
    leaseLeftMs: () => 9_000,
    brake: () => undefined,
    remainingMs: () => Infinity,
    openGrant: () => Promise.reject(new Error('no grant is opened')),
    closeGrants: async () => {},
  };
  const order = (step: string) => {
    const mode = agent.StepMode.RUN;
    const value = create(agent.RunStepSchema, { step, mode, bootOperationId: boot });
    const kind = { case: 'runStep', value } as const;
    const operation = create(agent.OperationSchema, { id: `h/1/2/${step}`, hostUid: 'h', kind });
    return runStep(dispatcher, operation, value, context, {});
  };
  return { begun: () => begun, order, sent };
}

test.each(['run.scrpit', 'run.command', ''])(
  'the step "%s" is not sent to a runner that does not offer it',
  async (step) => {
    const rig = setUp();
    expect(await rig.order(step)).toEqual({
      kind: 'failed',
      type: 'unsupported',
      message: `the runner has no step ${step}; it has deploy.erase_devices, run.script`,
    });
    expect([rig.begun(), rig.sent]).toEqual([0, []]);
  },
);

test('a step that the runner offers is sent, also after one that it does not offer', async () => {
  const rig = setUp();
  await rig.order('run.unknown');
  void rig.order('run.script');
  await afterMicrotasks(20);
  expect([rig.begun(), rig.sent]).toEqual([1, ['order']]);
});
