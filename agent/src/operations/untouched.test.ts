/** The report about the disks of an image that was to be written, for each way in which it ends. */
import { create, toJson } from '@bufbuild/protobuf';
import { VirtualClock } from '@rackwright/bmc/conformance';
import {
  agent,
  asRunNumber,
  DeployProof,
  deploymentIdOf,
  type OperationId,
  writeImageStep,
} from '@rackwright/messages';
import { digestOfHex, OciError, ociFailures } from '@rackwright/oci';
import { afterMicrotasks, quietLog } from '@rackwright/platform/testing';
import { type FinalResult, type Result, resultToWire } from '@rackwright/results';
import { expect, test } from 'vitest';
import { DetachedFetches } from '../images/index.ts';
import { defaultDispatcherLimits, noHandOffs, RunnerDispatcher } from '../runner-gateway/index.ts';
import { testSigner } from '../runner-gateway/testing.ts';
import { AttemptEnd, type OperationContext, type Progress } from '../session/index.ts';
import { runStep } from './run-step.ts';

const boot = 'h/1/1/1';
const id = 'h/1/2/1';
const digest = digestOfHex('cd'.repeat(32));
const disk = { blob: { mediaType: 'x', digest, sizeBytes: 5 } };
const pinned = {
  image: { version: '', disk: { ...disk, architecture: 'amd64' as const } },
  ...{ digests: [], giveBackSlot: () => {}, release: () => {} },
  ...{ isWhole: async () => true, doubt: () => {} },
  ...{ whole: Promise.resolve(), restarted: new AbortController().signal },
};

interface Change {
  readonly context?: Partial<OperationContext>;
  readonly link?: { readonly steps?: readonly string[]; readonly rescue?: boolean };
  readonly isAway?: boolean;
  readonly broken?: OciError;
}

function setUp({ context: changed, link: its, isAway = false, broken }: Change = {}) {
  const clock = new VirtualClock();
  const aborter = new AbortController();
  const told: Progress[] = [];
  const sent: string[] = [];
  const dispatcher = new RunnerDispatcher({
    ...{ clock, log: quietLog, signer: testSigner(), limits: defaultDispatcherLimits },
    ...{ operationState: () => 'begun', handOffs: noHandOffs },
  });
  const link = {
    ...{ bootOperationId: boot, hostUid: 'h', runnerSession: 's', steps: [writeImageStep] },
    ...{ rescue: false, architecture: '', imageEndpoint: '', unreceived: new Set<string>() },
    send: ({ case: kind }: { readonly case?: string | undefined }) => void sent.push(String(kind)),
    close: () => {},
    ...its,
  };
  if (!isAway) dispatcher.attach(link);
  const context: OperationContext = {
    signal: aborter.signal,
    begin: async () => {},
    reportProgress: (progress) => void told.push(progress),
    credential: () => Promise.reject(new Error('no credential is needed')),
    isLeaseValid: () => true,
    leaseLeftMs: () => 9_000,
    brake: () => undefined,
    remainingMs: () => Infinity,
    openGrant: () => Promise.reject(new Error('no grant is opened')),
    closeGrants: async () => {},
    ...changed,
  };
  const deployment = {
    ...{
      id: deploymentIdOf('h', asRunNumber(1)),
      image: { reference: `registry.example.org/os@${digest}` },
    },
    deploy: { proof: DeployProof.POWER_ON },
  };
  const mode = agent.StepMode.RUN;
  const step = { step: writeImageStep, mode, bootOperationId: boot, deployment };
  const value = create(agent.RunStepSchema, step);
  const kind = { case: 'runStep', value } as const;
  const operation = create(agent.OperationSchema, { id, hostUid: 'h', kind });
  const pin = async () => (broken === undefined ? pinned : Promise.reject(broken));
  const hostImages = {
    ...({ images: { pin, begin: pin }, clock, architecture: 'amd64' } as const),
    ...{ phoneHomePath: () => '', carriedOn: new DetachedFetches() },
  };
  const run = () =>
    runStep(dispatcher, operation, value, context, { hostImages }).catch((error: unknown) => {
      if (error instanceof AttemptEnd) return error.result;
      throw error;
    });
  const says = (operationId: OperationId, result: Result): void => {
    const report = create(agent.ReportSchema, { operationId, result: resultToWire(result) });
    dispatcher.report(link, report, undefined);
  };
  return { aborter, clock, dispatcher, link, run, says, sent, told };
}

async function settled(): Promise<void> {
  await afterMicrotasks(100);
}

const failed = (type: 'cancelled' | 'unsupported'): FinalResult => ({
  ...{ kind: 'failed', type, message: 'the words' },
});

test.for<[string, Change, object]>([
  ['a runner without the step', { link: { steps: [] } }, { type: 'unsupported' }],
  ['a rescue system', { link: { rescue: true } }, { type: 'unsupported' }],
  ['no runner', { isAway: true }, { kind: 'transientError', cause: 'runnerAway' }],
  [
    'what may not begin',
    { context: { begin: () => Promise.reject(new AttemptEnd(failed('cancelled'))) } },
    { type: 'cancelled' },
  ],
])('no disk is touched by %s', async ([, change, expected]) => {
  const { clock, run, sent } = setUp(change);
  const result = await clock.settle(run());
  expect(result).toMatchObject({ ...expected, disksUntouched: true });
  expect(sent).toEqual([]);
});

test('no disk is touched by an image that cannot be had', async () => {
  const sent: string[] = [];
  for (const kind of ociFailures) {
    const { run } = setUp({ broken: new OciError(kind, `registry.example: ${kind}`) });
    const result = await run();
    if (result.kind === 'retryAfter') continue;
    expect(result).toHaveProperty('disksUntouched', true);
    const wire = resultToWire(result);
    if (wire.case !== 'failed') continue;
    sent.push(JSON.stringify([kind, toJson(agent.FailedSchema, wire.value)]));
  }
  await expect(`${sent.join('\n')}\n`).toMatchFileSnapshot('./untouched.ends.jsonl');
});

test('after the boot a disk is untouched only if the runner got no order for it', async () => {
  for (const leaseValid of [false, true]) {
    const { dispatcher, run, sent } = setUp({ context: { isLeaseValid: () => leaseValid } });
    const ended = run();
    await settled();
    expect(sent).toEqual(leaseValid ? ['order'] : []);
    dispatcher.endBoot(boot, 'the host has netbooted');
    const result = await ended;
    expect(result).toMatchObject({ kind: 'failed', type: 'interrupted' });
    expect('disksUntouched' in result).toBe(!leaseValid);
  }
});

test('a cancelled runner has left the disk untouched unless it was at work on it', async () => {
  for (const isHeard of [false, true]) {
    const { aborter, clock, run, says } = setUp();
    const ended = run();
    await settled();
    const continuing = { kind: 'continuing', step: writeImageStep, text: 'waits' } as const;
    if (isHeard) says(id, continuing);
    aborter.abort();
    says(`${id}/cancel`, { kind: 'complete' });
    const result = await clock.settle(ended);
    expect(result).toMatchObject({ kind: 'failed', type: 'cancelled' });
    expect('disksUntouched' in result).toBe(!isHeard);
  }
});

test('the work has begun once the runner says so, and not before', async () => {
  const { run, says, told } = setUp();
  const ended = run();
  await settled();
  const progress = {
    kind: 'continuing',
    step: writeImageStep,
    text: 'checking the image',
  } as const;
  says(id, progress);
  expect(told.at(-1)).toEqual({ step: writeImageStep, text: 'checking the image' });
  says(id, { ...progress, begun: true });
  expect(told.at(-1)).toMatchObject({ begun: true });
  says(id, { ...failed('cancelled'), disksUntouched: true } as FinalResult);
  expect(await ended).toMatchObject({ type: 'cancelled', disksUntouched: true });
});
