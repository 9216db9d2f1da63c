/** The next run of a goal, and the handling of a failed goal. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actors,
  asRunNumber,
  BmcEndpointSchema,
  FailureType,
  failureNameOf,
  GivenUpCause,
  HostGoal,
  type HostSpecSchema,
  HostState,
  HostStatusSchema,
  InventorySchema,
  RerunClass,
  type Run,
  RunKind,
  RunOutcome,
  RunSchema,
  type store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { hardwareChanged } from '../erasure/hardware.ts';
import { beginPass, type Pass } from '../pass/pass.ts';
import { defaultTiming } from '../pass/timing.ts';
import { verifyFailed } from '../pass/transitions.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { bench } from '../testing/bench.ts';
import {
  backOff,
  holdForReview,
  isRetryDue,
  mayRetryGoal,
  missingNeedOf,
  noteMissingNeeds,
  wantedRun,
} from './goal.ts';

type Init<S extends Parameters<typeof create>[0]> = Exclude<
  MessageInitShape<S>,
  { $typeName: string }
>;

interface Host {
  readonly status?: Init<typeof HostStatusSchema>;
  readonly spec?: Init<typeof HostSpecSchema>;
  readonly record?: Partial<store.HostRecord>;
  readonly snapshot?: Partial<HostSnapshot>;
}

const nowMs = Date.UTC(2026, 0, 1);
const { MANAGEABLE, AVAILABLE, PROVISIONED, NEW, EXTERNAL } = HostState;
const { VERIFY, INSPECT, CLEAN, PROVISION, POWER, ADOPT, DELETE } = RunKind;
const inventory = create(InventorySchema, {});

/** A verified, inspected, unclaimed host, with these changes. */
function passOf({ status = {}, spec = {}, record = {}, snapshot = {} }: Host = {}): Pass {
  const host = bench(spec);
  const kept = host.record.host;
  if (kept?.spec?.bmc === undefined) throw new Error('the bench has a host with a BMC');
  kept.status = create(HostStatusSchema, { state: MANAGEABLE, ...status });
  const verifiedBmc = create(BmcEndpointSchema, kept.spec.bmc);
  Object.assign(host.record, { verifiedBmc, ...record });
  const facts = { ...host.snapshot.facts, inventory };
  return beginPass(host.record, { ...host.snapshot, facts, nowMs, ...snapshot });
}

const failedAs = (runKind: RunKind, type: FailureType = FailureType.IDENTITY_MISMATCH) => ({
  status: { lastError: { runKind, failure: { type } } },
});
const fault = (type: string, sinceMs = nowMs) => ({ type, since: timestampFromMs(sinceMs) });
const otherBmc = create(BmcEndpointSchema, { address: '10.0.0.2' });

test.each<[string, RunKind | undefined, Host]>([
  ['one that is ready to be cleaned', CLEAN, {}],
  ['one that was never inspected', INSPECT, { snapshot: { facts: bench().snapshot.facts } }],
  ['a new one', VERIFY, { status: { state: NEW } }],
  ['one whose BMC was never proved', VERIFY, { record: { verifiedBmc: undefined } }],
  ['one whose BMC is another one now', VERIFY, { record: { verifiedBmc: otherBmc } }],
  ['one that is to be adopted', ADOPT, { status: { state: NEW }, record: { adoptTo: EXTERNAL } }],
  ['one whose inspection met another machine', VERIFY, failedAs(INSPECT)],
  ['one whose clean met another machine', VERIFY, failedAs(CLEAN)],
  ['one whose provision met another machine', VERIFY, failedAs(PROVISION)],
  ['one whose power command met another machine', CLEAN, failedAs(POWER)],
  ['one whose inspection failed otherwise', CLEAN, failedAs(INSPECT, FailureType.IO_ERROR)],
  [
    'one that was to be verified, and failed',
    VERIFY,
    { status: { faults: [fault(verifyFailed)] } },
  ],
  ['an available one', undefined, { status: { state: AVAILABLE } }],
  ['one in use', undefined, { status: { state: PROVISIONED } }],
  ['one that somebody claims', undefined, { status: { claim: { by: 'user:ann' } } }],
  ['one in rescue', undefined, { status: { inRescue: true } }],
  ['one that shall be manageable', undefined, { spec: { goal: HostGoal.MANAGEABLE } }],
  ['one that is retired', undefined, { spec: { retired: true } }],
  ['one whose hardware has changed', INSPECT, { status: { faults: [fault(hardwareChanged)] } }],
  [
    'one whose hardware an inspection did not settle',
    undefined,
    {
      status: {
        faults: [fault(hardwareChanged)],
        run: { kind: INSPECT, outcome: RunOutcome.SUCCEEDED, endTime: timestampFromMs(nowMs) },
      },
    },
  ],
])('the goal chooses the next run of %s', (_, wanted, host) => {
  expect(wantedRun(passOf(host))).toBe(wanted);
});

/** A failed run, in the form for `backOff`. */
const runOf = (init: Init<typeof RunSchema> = {}): Run =>
  create(RunSchema, { kind: INSPECT, number: asRunNumber(4), outcome: RunOutcome.FAILED, ...init });

function after(run: Run, host: Host = {}) {
  const pass = passOf(host);
  backOff(pass, run);
  const { backoff } = pass.status;
  const next = backoff?.nextAttemptTime;
  return {
    failures: backoff?.failures,
    givenUp: backoff?.givenUpReason ?? '',
    waitsMs: next === undefined ? undefined : timestampMs(next) - nowMs,
    ofCredential: pass.record.failedCredentialVersion,
  };
}

const errorOf = (type: FailureType) => ({ error: { type } });
const { goalDelayMs, goalFailuresMax, automaticRecleansMax } = defaultTiming;

test('a goal that failed is tried again after a pause, with the credential of now noted', () => {
  const { waitsMs = 0, ...found } = after(runOf(errorOf(FailureType.IO_ERROR)));
  expect(found).toEqual({ failures: 1, givenUp: '', ofCredential: 1n });
  expect(waitsMs).toBeGreaterThan(goalDelayMs / 2);
  expect(waitsMs).toBeLessThanOrEqual(goalDelayMs * 2);
});

test.each([
  ['an abort', runOf({ outcome: RunOutcome.CANCELLED }), 'was aborted; ask for the next one'],
  ...[
    FailureType.IDENTITY_MISMATCH,
    FailureType.IDENTITY_UNPROVEN,
    FailureType.AUTHENTICATION,
    FailureType.LOCKED_OUT,
    FailureType.NOT_ERASED,
    FailureType.NO_DEVICES,
    FailureType.DEVICE_REFUSED,
    FailureType.DATA_RETURNED,
    FailureType.PLAN_CHANGED,
  ].map((type) => {
    return [failureNameOf(type), runOf(errorOf(type)), 'does not go away by itself'] as const;
  }),
  [
    'a step that never runs twice',
    runOf({ steps: [{ name: 'bios.flash', rerunClass: RerunClass.NEVER_TWICE, attempt: 1 }] }),
    'bios.flash never runs twice by itself',
  ],
] as const)('after %s only a person starts the goal again', (_, run, text) => {
  const { waitsMs, givenUp } = after(run);
  expect(givenUp).toContain(text);
  expect(waitsMs).toBeUndefined();
});

test('a step that never runs twice, and was not tried, is no reason to give up', () => {
  const steps = [{ name: 'bios.flash', rerunClass: RerunClass.NEVER_TWICE, attempt: 0 }];
  expect(after(runOf({ steps })).givenUp).toBe('');
  const again = [{ name: 'deploy.erase', rerunClass: RerunClass.SAFE, attempt: 2 }];
  expect(after(runOf({ steps: again })).givenUp).toBe('');
});

test('the last permitted failure in a row gives up, and not the one before', () => {
  const failed = (failures: number) => after(runOf(), { status: { backoff: { failures } } });
  expect(failed(goalFailuresMax - 2)).toMatchObject({ failures: goalFailuresMax - 1, givenUp: '' });
  const last = failed(goalFailuresMax - 1);
  expect(last.givenUp).toBe(`${goalFailuresMax} attempts in a row failed`);
  expect(last.waitsMs).toBeUndefined();
});

test('a host cleaned again often enough waits for a person; all else is tried again', () => {
  const spent = { status: { automaticRecleans: automaticRecleansMax } };
  expect(after(runOf({ kind: CLEAN }), spent).givenUp).toContain('it has been cleaned again');
  expect(after(runOf({ kind: INSPECT }), spent).givenUp).toBe('');
  const fewer = { status: { automaticRecleans: automaticRecleansMax - 1 } };
  expect(after(runOf({ kind: CLEAN }), fewer).givenUp).toBe('');
});

test('a deletion is never given up, and what is not its own run keeps it from nothing', () => {
  const deleting = { status: { deletion: { by: 'user:ann' }, backoff: { failures: 9 } } };
  const hopeless = errorOf(FailureType.AUTHENTICATION);
  for (const run of [
    runOf({ kind: DELETE, ...hopeless }),
    runOf({ kind: CLEAN, requestedBy: actors.deletion, ...hopeless }),
  ]) {
    const { givenUp, failures, waitsMs } = after(run, deleting);
    expect([givenUp, failures]).toEqual(['', 10]);
    expect(waitsMs).toBeGreaterThan(0);
  }
  expect(after(runOf({ kind: CLEAN, ...hopeless }), deleting).failures).toBeUndefined();
});

test('a goal is tried again when its pause is over, and one given up when a person asks', () => {
  const may = (backoff: Init<typeof HostStatusSchema>['backoff'], version = 1n) =>
    mayRetryGoal(
      passOf({
        status: backoff === undefined ? {} : { backoff },
        record: { failedCredentialVersion: version },
      }),
    );
  const at = (ms: number) => ({ nextAttemptTime: timestampFromMs(nowMs + ms) });
  expect(may(undefined)).toBe(true);
  expect([may(at(1)), may(at(0)), may(at(-1))]).toEqual([false, true, true]);
  expect(may({ givenUp: GivenUpCause.ABORTED })).toBe(false);
  // A credential other than the failed one permits another attempt at once.
  expect([may({ givenUp: GivenUpCause.ABORTED }, 0n), may(at(60_000), 0n)]).toEqual([true, true]);
  expect(isRetryDue(passOf({ status: { backoff: at(1) } }))).toBe(false);
  expect(isRetryDue(passOf())).toBe(true);
});

test('after a restored store nobody is booted or erased before a person has looked', () => {
  const restored = { record: { lookFirstSince: timestampFromMs(nowMs) } };
  for (const [kind, waits] of [
    [INSPECT, true],
    [CLEAN, true],
    [VERIFY, false],
    [undefined, false],
  ] as const) {
    const pass = passOf(restored);
    expect(holdForReview(pass, kind)).toBe(waits ? 'held' : 'free');
    expect(pass.status.backoff?.lookFirst ?? false).toBe(waits);
    expect(holdForReview(passOf(), kind)).toBe('free');
  }
});

test('a missing requirement of runs is a fault while it is missing, since it was first so', () => {
  const lacks = (snapshot: Partial<HostSnapshot>, ...types: string[]) => {
    const faults = types.map((type) => fault(type, nowMs - 1_000));
    const pass = passOf({ status: { faults }, snapshot });
    const needs = noteMissingNeeds(pass);
    const left = pass.status.faults.map(({ type, since }) => [
      type,
      since === undefined ? undefined : nowMs - timestampMs(since),
    ]);
    return { needs, left };
  };
  const others = { hasReservations: false };
  const noCredential = { credentialVersion: undefined };
  expect(lacks(others)).toEqual({ needs: 'missing', left: [['notUnique', 0]] });
  expect(lacks(noCredential)).toEqual({ needs: 'missing', left: [['noCredential', 0]] });
  expect(lacks(others, 'notUnique').left).toEqual([['notUnique', 1_000]]);
  expect(lacks(noCredential, 'noCredential').left).toEqual([['noCredential', 1_000]]);
  expect(lacks(noCredential, 'notUnique').left).toEqual([['noCredential', 0]]);
  expect(lacks({ ...others, ...noCredential }, 'noCredential').left).toEqual([['notUnique', 0]]);
  const well = lacks({}, 'notUnique', 'powerFailed', 'noCredential');
  expect(well).toEqual({ needs: 'complete', left: [['powerFailed', 1_000]] });
});

test('a missing credential is reported by its name, if the host names one', () => {
  const text = (credential: string) => {
    const bmc = { address: '10.0.0.1', credential };
    return missingNeedOf(passOf({ spec: { bmc }, snapshot: { credentialVersion: undefined } }))
      ?.message;
  };
  expect(text('credentials/c1')).toBe('the credential (credentials/c1) does not exist');
  expect(text('')).toBe('the credential (none named) does not exist');
  expect(missingNeedOf(passOf())).toBeUndefined();
});
