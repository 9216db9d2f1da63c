/** The host after a failed run: faults, texts, and retries. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { deviceFactsOf } from '@rackwright/erasure';
import {
  DeploySpecSchema,
  FailureType,
  FaultSeverity,
  HostGoal,
  HostState,
  type HostStatusSchema,
  InventorySchema,
  RunKind,
  RunOutcome,
  type RunSchema,
  store,
  writeImageStep,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { namesOf } from '../erasure/certify.ts';
import { virtioDisk } from '../testing/bench.ts';
import { did, type Init, landed, nowMs } from './landing.fixture.ts';

const { AVAILABLE, MANAGEABLE, PROVISIONED } = HostState;
const { CLEAN, INSPECT, PROVISION, REIMAGE, SERVICE, VERIFY, ADOPT } = RunKind;
const { SUCCEEDED, FAILED, TIMED_OUT, CANCELLED } = RunOutcome;
const { ERROR, WARNING } = FaultSeverity;
const anySuccess = 'the next run that succeeds, whatever it does';
const error = { type: FailureType.IO_ERROR, message: 'no' };

type Run = Init<typeof RunSchema>;
type Status = Init<typeof HostStatusSchema>;

/** It ended during the write; or before it. */
const wrote = { steps: [did(writeImageStep)] };
/** The disk had a complete image. */
const whole = { record: { deployedRun: 7n } };

const inventory = create(InventorySchema, { devices: [virtioDisk] });
const certified = [
  create(store.CertifiedDeviceSchema, {
    ...namesOf(deviceFactsOf(virtioDisk)),
    certificate: 'erasureCertificates/c1',
    useEpoch: 1n,
  }),
];
/** Each of its disks has a certificate of this use. */
const erased = { inventory, record: { certified } };

const faultOf = ({ status }: ReturnType<typeof landed>) =>
  status.faults.map(({ type, severity, clearedBy }) => ({ type, severity, clearedBy }))[0];

describe('the fault of a deployment', () => {
  const reimaged = (run: Run = {}, status: Status = {}, more = {}) =>
    faultOf(
      landed({ kind: REIMAGE, outcome: FAILED, ...run }, { ...status, state: PROVISIONED }, more),
    );
  const recovery = 'a reimage or release run that succeeds';
  const type = 'reimageFailed';

  test('is a warning on a host that runs what it ran, and an error on any other', () => {
    expect(reimaged()).toEqual({ type, severity: WARNING, clearedBy: anySuccess });
    expect(reimaged(wrote)).toEqual({ type, severity: ERROR, clearedBy: recovery });
    expect(reimaged(wrote, {}, whole)).toEqual({ type, severity: ERROR, clearedBy: recovery });
    expect(reimaged({ outcome: TIMED_OUT })?.severity).toBe(WARNING);
  });

  test('a fault that was an error stays an error, and another fault does not make it one', () => {
    const faultSet = (of: string, severity: FaultSeverity) =>
      reimaged({}, { faults: [{ type: of, severity }] });
    expect(faultSet(type, ERROR)).toMatchObject({ severity: ERROR, clearedBy: recovery });
    expect(faultSet(type, WARNING)).toMatchObject({ severity: WARNING, clearedBy: anySuccess });
    const { status } = landed(
      { kind: REIMAGE, outcome: FAILED },
      { state: PROVISIONED, faults: [{ type: 'powerFailed', severity: ERROR }] },
    );
    expect(status.faults.map(({ severity }) => severity)).toEqual([ERROR, WARNING]);
  });

  test('is absent if the deployment was stopped before it wrote anything', () => {
    expect(reimaged({ outcome: CANCELLED })).toBeUndefined();
    expect(reimaged({ outcome: CANCELLED, ...wrote })).toMatchObject({ type, severity: ERROR });
  });

  test('is a warning on a host that is as ready as before', () => {
    const provision = (more = {}) =>
      landed({ kind: PROVISION, outcome: FAILED, error }, { state: AVAILABLE }, more);
    const clearedBy = 'a provision or adopt run that succeeds';
    const ready = provision(erased);
    expect(ready.status).toMatchObject({ state: AVAILABLE, dirty: false, useEpoch: 1n });
    expect(faultOf(ready)).toEqual({ type: 'provisionFailed', severity: WARNING, clearedBy });
    const other = provision();
    expect(other.status).toMatchObject({ state: MANAGEABLE, dirty: true, useEpoch: 2n });
    expect(faultOf(other)).toEqual({ type: 'provisionFailed', severity: ERROR, clearedBy });
  });
});

test.each<[string, boolean, Run, Status, object]>([
  ['that failed otherwise', true, { error }, {}, {}],
  ['that said nothing', true, {}, {}, {}],
  ['that met another machine', false, { error: { type: FailureType.IDENTITY_MISMATCH } }, {}, {}],
  ['that proved no machine', false, { error: { type: FailureType.IDENTITY_UNPROVEN } }, {}, {}],
  ['that wrote', false, wrote, {}, {}],
  ['of a host that is to be removed', false, {}, { deletion: { by: 'user:ann' } }, {}],
  ['of one that shall be manageable', false, {}, {}, { spec: { goal: HostGoal.MANAGEABLE } }],
  ['of one without a certificate', false, {}, {}, { record: {} }],
])('a provision %s leaves its host available: %j', (_, isReady, run, status, more) => {
  const { state, dirty } = landed(
    { kind: PROVISION, outcome: FAILED, ...run },
    { state: AVAILABLE, ...status },
    { ...erased, ...more },
  ).status;
  expect([state, dirty]).toEqual(isReady ? [AVAILABLE, false] : [MANAGEABLE, true]);
});

test('a provision leaves a diskless host available only if nothing has used the host since', () => {
  const diskless = {
    inventory: create(InventorySchema),
    spec: { cleaning: { allowDiskless: true } },
  };
  const after = (state: HostState) =>
    landed({ kind: PROVISION, outcome: FAILED, error }, { state }, diskless).status;
  expect(after(AVAILABLE)).toMatchObject({ state: AVAILABLE, dirty: false });
  // A cause outside the run has moved it on, as when a restored store is accepted.
  expect(after(MANAGEABLE)).toMatchObject({ state: MANAGEABLE, dirty: true });
});

test('a host made ready again keeps the fault and error of its provision as a warning', () => {
  const cleaned = (runKind: RunKind, ...types: string[]) => {
    const faults = types.map((type) => ({ type, severity: ERROR }));
    const lastError = { runKind, failure: error };
    const { status } = landed({ kind: CLEAN, outcome: SUCCEEDED }, { faults, lastError });
    const left = status.faults.map(({ type, severity }) => [type, severity]);
    return { left, error: status.lastError?.runKind };
  };
  expect(cleaned(PROVISION, 'releaseFailed', 'provisionFailed', 'cleanFailed')).toEqual({
    left: [
      ['releaseFailed', ERROR],
      ['provisionFailed', WARNING],
    ],
    error: PROVISION,
  });
  expect(cleaned(INSPECT, 'provisionFailed').error).toBeUndefined();
  expect(cleaned(PROVISION, 'releaseFailed')).toEqual({
    left: [['releaseFailed', ERROR]],
    error: undefined,
  });
  const verified = landed(
    { kind: VERIFY, outcome: SUCCEEDED },
    { faults: [{ type: 'provisionFailed', severity: ERROR }] },
  );
  expect(verified.status.faults[0]?.severity).toBe(ERROR);
});

test.each<[string, Run, Status, object]>([
  ['no; nothing was written', { kind: PROVISION, error }, { state: AVAILABLE }, {}],
  ['no', { kind: INSPECT, error }, { state: AVAILABLE }, {}],
  [
    'failed; on the disk: a part of os:2 at most, which does not boot',
    { kind: REIMAGE, ...wrote },
    { state: PROVISIONED },
    { record: { image: 'os:2' } },
  ],
  [
    'failed; on the disk: the whole of os:2',
    { kind: REIMAGE, ...wrote },
    { state: PROVISIONED, image: 'os:2' },
    whole,
  ],
  [
    'failed; it boots os:2 over the network',
    { kind: REIMAGE, ...wrote },
    { state: PROVISIONED, image: 'os:2', deploy: create(DeploySpecSchema, { netboot: true }) },
    whole,
  ],
  [
    'failed; it boots os:1 over the network, as before',
    { kind: REIMAGE },
    { state: PROVISIONED, image: 'os:1', deploy: create(DeploySpecSchema, { netboot: true }) },
    {},
  ],
  [
    'timed out; on the disk: os:1, untouched',
    { kind: REIMAGE, outcome: TIMED_OUT },
    { state: PROVISIONED, image: 'os:1' },
    {},
  ],
  [
    'cancelled; on the disk: what ran there before, untouched',
    { kind: REIMAGE, outcome: CANCELLED },
    { state: PROVISIONED },
    {},
  ],
])('a timeline says how a run ended and what is left: %s', (told, run, status, more) => {
  const { record } = landed({ outcome: FAILED, ...run }, status, more);
  expect(record.change?.cause.endsWith(`: ${told}`)).toBe(true);
});

test('only a failure on the way to the goal delays the goal, and not a pool’s deployment', () => {
  const failures = (run: Run, state: HostState = MANAGEABLE, more = {}) =>
    landed({ outcome: FAILED, error, ...run }, { state }, more).status.backoff?.failures;
  expect(failures({ kind: INSPECT })).toBe(1);
  expect(failures({ kind: SERVICE })).toBeUndefined();
  expect(failures({ kind: SERVICE, requestedBy: 'deletion' })).toBe(1);
  expect(failures({ kind: PROVISION, ...wrote }, AVAILABLE)).toBe(1);
  expect(failures({ kind: PROVISION }, AVAILABLE, erased)).toBeUndefined();
  expect(
    failures({ kind: PROVISION, requestedBy: 'pools/p', ...wrote }, AVAILABLE),
  ).toBeUndefined();
  expect(failures({ kind: INSPECT, requestedBy: 'pools/p' }, AVAILABLE)).toBe(1);
});

test('a power command is dropped while it is open whose BMC that is', () => {
  const pendingPower = create(store.PendingPowerSchema, { steps: ['power.off'], by: 'user:ann' });
  const waits = (run: Run) =>
    landed(run, {}, { record: { pendingPower } }).record.pendingPower !== undefined;
  expect(waits({ kind: VERIFY, outcome: FAILED })).toBe(false);
  expect(waits({ kind: VERIFY, outcome: TIMED_OUT })).toBe(false);
  expect(waits({ kind: VERIFY, outcome: CANCELLED })).toBe(true);
  expect(waits({ kind: INSPECT, outcome: FAILED })).toBe(true);
});

test('a person who adopts a host has looked at it; nobody else has by the end of a run', () => {
  const record = { adoptTo: HostState.EXTERNAL, lookFirstSince: timestampFromMs(nowMs) };
  const after = (kind: RunKind, outcome: RunOutcome) => {
    const pass = landed({ kind, outcome }, {}, { record });
    return [pass.status.state, pass.record.lookFirstSince !== undefined, pass.record.adoptTo];
  };
  expect(after(ADOPT, SUCCEEDED)).toEqual([HostState.EXTERNAL, false, HostState.UNSPECIFIED]);
  expect(after(ADOPT, FAILED)).toEqual([MANAGEABLE, true, HostState.EXTERNAL]);
  expect(after(INSPECT, SUCCEEDED)).toEqual([MANAGEABLE, true, HostState.EXTERNAL]);
});

test('a host that was written is erased before it goes; one that nobody wrote is not', () => {
  const erases = (run: Run, state: HostState = AVAILABLE) =>
    landed({ outcome: FAILED, ...run }, { state }).record.eraseBeforeRemoval;
  expect(erases({ kind: PROVISION })).toBe(false);
  expect(erases({ kind: PROVISION, ...wrote })).toBe(true);
  expect(erases({ kind: PROVISION, outcome: SUCCEEDED, ...wrote })).toBe(true);
  expect(erases({ kind: INSPECT, ...wrote })).toBe(false);
});

test('a claim or a release without a time is of one use', () => {
  const { RELEASE } = RunKind;
  const claimed = (at: number | undefined, startTime: Run['startTime'] | null) => {
    const claim = { by: 'user:ann', ...(at === undefined ? {} : { at: timestampFromMs(at) }) };
    const began = startTime === null ? { startTime: undefined } : { startTime };
    const run = { kind: RELEASE, outcome: SUCCEEDED, ...began } as Run;
    return landed(run, { state: PROVISIONED, claim }).status.claim?.by;
  };
  expect(claimed(undefined, timestampFromMs(nowMs))).toBeUndefined();
  expect(claimed(nowMs, null)).toBeUndefined();
  expect(claimed(nowMs, timestampFromMs(nowMs - 1))).toBe('user:ann');
});
