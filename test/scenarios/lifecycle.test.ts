/** Results and requests against a host's life: what each may change, and when it is tried again. */
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  failed,
  inspected,
  nextWakeMs,
  verified,
  virtioDisk,
} from '@rackwright/controlplane/testing';
import {
  agent,
  CleaningPolicySchema,
  FailureType,
  GivenUpCause,
  HostGoal,
  HostSpecSchema,
  HostState,
  isGivenUp,
  RunKind,
  RunOutcome,
  RunPhase,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  agentLeaves,
  agentReturns,
  cancelsIn,
  conflict,
  continuing,
  driveToAvailable,
  explained,
  faultsOf,
  orderOf,
  pass,
  refusalOf,
  runOf,
  sentBy,
  statusOf,
  transient,
} from './words.ts';

const minuteMs = 60_000;
const deletion = { kind: 'delete', reason: '' } as const;

/** In the first inspection of a host that goes its way by itself. */
function inspecting(): Bench {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  return host;
}

/** Fails the clean that erases until `failures` have been counted, and begins the next one. */
function erasingAgain(failures: number): Bench {
  const host = bench();
  driveToErase(host);
  for (let count = 1; count <= failures; count++) {
    host.report(failed('internal', `failure ${count}`));
    expect(statusOf(host).backoff?.failures).toBe(count);
    pass(host, 60 * minuteMs);
    driveToInspect(host);
    host.report(inspected());
  }
  return host;
}

test('metal3-3: a host whose inventory is known goes from verify straight to clean', () => {
  const host = bench();
  driveToErase(host);
  const { facts } = host.snapshot;
  const known = bench();
  known.snapshot = { ...known.snapshot, facts };
  known.apply({ kind: 'tick' });
  known.report(verified());
  expect(runOf(known).kind).toBe(RunKind.CLEAN);
  expect(statusOf(known).backoff).toBeUndefined();
});

test('metal3-11: a failed inspection is a fault, counted, and tried again in a minute', () => {
  const host = inspecting();
  host.report(failed('internal', 'the runner could not read its disks'));
  expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
  expect(statusOf(host).faults).toMatchObject([
    { type: 'inspectFailed', message: 'the runner could not read its disks' },
  ]);
  expect(statusOf(host).backoff).toMatchObject({ failures: 1, givenUp: GivenUpCause.UNSPECIFIED });
  const next = statusOf(host).backoff?.nextAttemptTime;
  const pauseMs = next === undefined ? 0 : timestampMs(next) - host.nowMs;
  expect(pauseMs).toBeGreaterThanOrEqual(45_000);
  expect(pauseMs).toBeLessThanOrEqual(minuteMs);
  expect(nextWakeMs(host.record, host.nowMs)).toBe(host.nowMs + pauseMs);
  expect(sentBy(pass(host, pauseMs - 1))).toEqual([]);
  expect(sentBy(pass(host, 1)).map(({ id }) => id)).toEqual(['u1/3/0/1']);
});

test('metal3-19: an inspection that succeeds clears count and error, and is stored', () => {
  const host = inspecting();
  host.report(failed('internal'));
  pass(host, minuteMs);
  driveToInspect(host);
  expect(statusOf(host).backoff?.failures).toBe(1);
  host.report(inspected());
  expect(host.snapshot.facts.inventory?.devices.map(({ serial }) => serial)).toEqual(['DISK-1']);
  expect(statusOf(host).backoff).toBeUndefined();
  expect(statusOf(host).lastError).toBeUndefined();
  expect(faultsOf(host)).toEqual([]);
  expect(runOf(host).kind).toBe(RunKind.CLEAN);
});

test('metal3-21: progress is shown and writes nothing', () => {
  const host = bench();
  driveToErase(host);
  const before = host.record;
  const effects = host.report(continuing('deploy.erase_devices', 40));
  expect(effects.map(({ kind }) => kind)).toEqual(['progress']);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
});

test('metal3-23: a conflict keeps error and count, and the work is ordered again later', () => {
  const host = erasingAgain(2);
  const before = host.operation();
  const { lastError } = statusOf(host);
  host.report(conflict('the runner is busy', 30_000));
  expect(statusOf(host).backoff?.failures).toBe(2);
  expect(statusOf(host).lastError).toEqual(lastError);
  expect(lastError?.failure?.message).toBe('failure 2');
  expect(sentBy(pass(host, 29_000))).toEqual([]);
  const [again] = sentBy(pass(host, 1_000));
  expect(again?.id).not.toBe(before.id);
  expect(again && orderOf(again)?.devices).toEqual(orderOf(before)?.devices);
});

test('metal3-23: conflicts share one budget, whatever came between them', () => {
  const host = bench();
  driveToErase(host);
  const startMs = host.nowMs;
  for (let turn = 0; turn < 60 && statusOf(host).lastError === undefined; turn++) {
    host.report(turn % 2 === 0 ? conflict('the runner is busy') : transient('busy'));
    if (statusOf(host).lastError === undefined) pass(host, minuteMs);
  }
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.CONFLICT);
  expect(host.nowMs - startMs).toBeLessThanOrEqual(18 * minuteMs);
});

test('metal3-25: a corrected credential is tried at once, and success clears the error', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(failed('authentication', 'the BMC does not accept the password'));
  expect(isGivenUp(statusOf(host).backoff)).toBe(true);
  host.snapshot = { ...host.snapshot, credentialVersion: 2n };
  pass(host, 0);
  driveToInspect(host);
  host.report(inspected());
  expect(statusOf(host).lastError).toBeUndefined();
  expect(faultsOf(host)).toEqual([]);
});

test('metal3-25: that holds for an available host too, whose verify was refused', () => {
  const host = bench();
  driveToAvailable(host);
  host.request({ kind: 'verify' });
  host.report(failed('authentication', 'the BMC does not accept the password'));
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  expect(faultsOf(host)).toEqual(['bmcAuthentication', 'verifyFailed']);
  expect(explained(host).unblock.join()).toContain('rackwright credential update c1');
  expect(sentBy(pass(host, 24 * 60 * minuteMs))).toEqual([]);
  host.snapshot = { ...host.snapshot, credentialVersion: 2n };
  expect(sentBy(pass(host, 0)).map(({ kind }) => kind.case)).toEqual(['verifyAccess']);
  host.report(verified());
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  expect(statusOf(host).lastError).toBeUndefined();
  expect(faultsOf(host)).toEqual([]);
});

test('metal3-29: a goal that was given up is taken up at once when the spec is edited', () => {
  const host = erasingAgain(2);
  host.report(failed('internal', 'failure 3'));
  expect(statusOf(host).backoff?.givenUpReason).toContain('3 attempts');
  // Its stay in the runner ends, and nothing else begins.
  const switched = sentBy(pass(host, 24 * 60 * minuteMs));
  expect(switched.map(({ kind }) => kind.case === 'setPower' && kind.value.on)).toEqual([false]);
  host.report(done);
  expect(sentBy(pass(host, 24 * 60 * minuteMs))).toEqual([]);
  const present = host.record.host?.spec;
  if (present === undefined) throw new Error('no spec');
  const spec = clone(HostSpecSchema, present);
  spec.cleaning = create(CleaningPolicySchema, { priorityOverrides: { 'deploy.burn_in': 5 } });
  const sent = sentBy(host.request({ kind: 'update', spec, labels: {} }));
  expect(sent).toHaveLength(1);
  expect(runOf(host).kind).toBe(RunKind.CLEAN);
  expect(statusOf(host).backoff).toBeUndefined();
});

test.each<[string, () => Bench]>([
  ['being inspected', inspecting],
  [
    'manageable and on',
    () => {
      const host = bench({ goal: HostGoal.MANAGEABLE });
      host.apply({ kind: 'tick' });
      host.report(verified());
      host.request({ kind: 'powerOn', bootOldDiskReason: 'a test' });
      host.report(done);
      return host;
    },
  ],
])('metal3-35: a host that is %s is switched off before it is forgotten', (_what, open) => {
  const host = open();
  const effects = host.request(deletion);
  if (cancelsIn(effects).length > 0) host.report(failed('cancelled'));
  expectPowerOff(host);
  expect(host.removed).toBe(false);
  expect(host.report(done)).toContainEqual({ kind: 'forget' });
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('metal3-35: an available host, which is off, is forgotten without a power command', () => {
  const host = bench();
  driveToAvailable(host);
  expect(host.request(deletion)).toContainEqual({ kind: 'forget' });
});

test('metal3-39: a power-off that fails delays a delete longer each time; explain shows it', () => {
  const host = inspecting();
  host.request(deletion);
  host.report(failed('cancelled'));
  const pausesMs: number[] = [];
  for (let attempt = 1; attempt <= 5; attempt++) {
    expectPowerOff(host);
    host.report(failed('notApplied', 'the BMC did nothing'));
    expect(statusOf(host).deletion).toBeDefined();
    expect(statusOf(host).lastError?.failure?.message).toBe('the BMC did nothing');
    expect(explained(host).headline).toContain('pending delete: the deletion is tried again');
    expect(explained(host).causes.map(({ text }) => text)).toContain('the BMC did nothing');
    const next = statusOf(host).backoff?.nextAttemptTime;
    pausesMs.push(next === undefined ? 0 : timestampMs(next) - host.nowMs);
    expect(sentBy(pass(host, (pausesMs.at(-1) ?? 0) - 1))).toEqual([]);
    pass(host, 1);
  }
  expect(pausesMs).toEqual(pausesMs.toSorted((a, b) => a - b));
  expect(pausesMs.every((pauseMs) => pauseMs > 0 && pauseMs <= 60 * minuteMs)).toBe(true);
  expect(host.removed).toBe(false);
  expect(host.report(done)).toContainEqual({ kind: 'forget' });
});

test('metal3-41: a host whose credential is gone can still be deleted', () => {
  const host = bench();
  host.snapshot = { ...host.snapshot, credentialVersion: undefined };
  host.apply({ kind: 'tick' });
  expect(faultsOf(host)).toEqual(['noCredential']);
  expect(host.request(deletion)).toContainEqual({ kind: 'forget' });
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test.each<[string, (host: Bench) => void]>([
  ['the pause after a failure', (host) => void host.report(failed('internal'))],
  ['a person', (host) => void host.report(failed('authentication'))],
  [
    'an address that another host holds',
    (host) => {
      host.report(failed('internal'));
      host.snapshot = { ...host.snapshot, hasReservations: false };
      pass(host, 60 * minuteMs);
    },
  ],
])('metal3-53: a host that waits for %s is deleted at once', (_what, wait) => {
  const host = bench();
  host.apply({ kind: 'tick' });
  wait(host);
  expect(runOf(host).phase).toBe(RunPhase.ENDED);
  expect(host.request(deletion)).toContainEqual({ kind: 'forget' });
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('metal3-59: a delete ends an inspection that waits, and cancels one under way', () => {
  const waiting = bench();
  waiting.apply({ kind: 'tick' });
  waiting.report(verified());
  waiting.report(done);
  waiting.report(done);
  waiting.request(deletion);
  expect(runOf(waiting).kind).toBe(RunKind.DELETE);
  expectPowerOff(waiting);
  expect(waiting.report(done)).toContainEqual({ kind: 'forget' });

  const working = inspecting();
  const { id } = working.operation();
  expect(cancelsIn(working.request(deletion))).toEqual([id]);
  expect(runOf(working).kind).toBe(RunKind.INSPECT);
  pass(working, 4 * minuteMs);
  expect(runOf(working).phase).toBe(RunPhase.RUNNING);
  working.report(failed('cancelled'));
  expect(runOf(working).kind).toBe(RunKind.DELETE);
});

test.each<['automatic' | 'manual']>([['automatic'], ['manual']])(
  'metal3-61: a delete is refused while a clean (%s) holds the host, and accepted after its abort',
  (how) => {
    const host = bench({ goal: HostGoal.MANAGEABLE });
    host.apply({ kind: 'tick' });
    host.report(verified());
    const steps = how === 'manual' ? [{ step: 'deploy.erase_devices', arguments: {} }] : [];
    host.request({ kind: 'clean', steps });
    driveToInspect(host);
    expect(refusalOf(host, deletion).message).toContain('clean 2 holds the host');
    host.request({ kind: 'abort', reason: 'to be sold' });
    host.report(failed('cancelled'));
    host.request(deletion);
    expectPowerOff(host);
    expect(host.report(done)).toContainEqual({ kind: 'forget' });
  },
);

test('metal3-61: a clean whose agent is gone, or whose BMC is silent, stops no delete', () => {
  const host = bench();
  driveToErase(host);
  agentLeaves(host);
  host.apply({ kind: 'tick' });
  host.nowMs += 89_000;
  host.apply({ kind: 'tick' });
  expect(refusalOf(host, deletion).message).toContain('clean 3 holds the host');
  host.nowMs += 1_000;
  host.request(deletion);
  expect(statusOf(host).deletion).toBeDefined();
  expect(runOf(host).phase).toBe(RunPhase.WAITING);
  const { id } = host.operation();
  expect(cancelsIn(agentReturns(host, [id]))).toEqual([id]);
  host.report(failed('cancelled'));
  expect(runOf(host).kind).toBe(RunKind.DELETE);

  const silent = bench({ goal: HostGoal.MANAGEABLE });
  silent.apply({ kind: 'tick' });
  silent.report(verified());
  silent.request({ kind: 'clean', steps: [] });
  expect(refusalOf(silent, deletion).message).toContain('clean 2 holds the host');
  silent.report(transient('unreachable', 'the BMC does not answer'));
  expect(silent.request(deletion)).toContainEqual({ kind: 'forget' });
});

test('metal3-63: an inspection ends well only with an inventory, and again when cut short', () => {
  const empty = inspecting();
  empty.report(done);
  expect(statusOf(empty).lastError?.failure).toMatchObject({ type: FailureType.INVALID_RESULT });

  const full = inspecting();
  full.report(inspected([virtioDisk]));
  expect(full.record.finishedRuns).toMatchObject([
    { kind: RunKind.INSPECT, outcome: RunOutcome.SUCCEEDED },
  ]);

  const told = inspecting();
  told.report(failed('internal', 'lsblk ended with code 32'));
  expect(statusOf(told).lastError?.failure?.message).toBe('lsblk ended with code 32');

  const silent = inspecting();
  silent.report(failed('internal', ''));
  expect(statusOf(silent).lastError?.failure?.message).not.toBe('');

  const cut = inspecting();
  const { id } = cut.operation();
  cut.report(failed('interrupted', 'the runner was restarted'));
  expect(cut.operation().kind.case).toBe('inspect');
  expect(cut.operation().id).not.toBe(id);
  expect(runOf(cut).phase).toBe(RunPhase.RUNNING);
});

const works: Readonly<Record<string, (host: Bench) => void>> = {
  'a clean': driveToErase,
  'a provision': (host) => {
    driveToAvailable(host);
    host.request({ kind: 'provision', image: `registry.example/os@sha256:${'1'.repeat(64)}` });
  },
};

test.each(Object.entries(works))(
  'metal3-67: a fault behind the agent delays the step of %s and changes no state',
  (_, begin) => {
    const host = bench();
    begin(host);
    const before = statusOf(host);
    host.report(conflict('the desk is full', 10_000, agent.ConflictReason.FAULT));
    const { state, dirty, faults, lastError, backoff } = statusOf(host);
    expect({ state, dirty, faults, lastError, backoff }).toEqual({
      state: before.state,
      dirty: before.dirty,
      faults: before.faults,
      lastError: before.lastError,
      backoff: before.backoff,
    });
    expect(sentBy(pass(host, 9_000))).toEqual([]);
    expect(sentBy(pass(host, 1_000))).toHaveLength(1);
  },
);

test('metal3-67: a hold for work that nobody ordered goes away with that work', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  agentReturns(host, ['u1/9/0/1']);
  expect(
    statusOf(host)
      .holds.map(({ reason }) => reason)
      .join(),
  ).toContain('u1/9/0/1');
  expect(refusalOf(host, { kind: 'inspect' }).message).toContain('held by system');
  agentReturns(host);
  expect(statusOf(host).holds).toEqual([]);
  expect(sentBy(host.request({ kind: 'inspect' }))).toHaveLength(1);
});

test('an agent that was away is asked again, and what it waits for is told meanwhile', () => {
  const host = inspecting();
  const { id } = host.operation();
  agentLeaves(host);
  host.nowMs += minuteMs;
  host.apply({ kind: 'tick' });
  expect(explained(host)).toMatchObject({ blocker: 'the agent of the rack' });
  expect(sentBy(agentReturns(host)).map((operation) => operation.id)).toEqual([id]);
  expect(runOf(host)).toMatchObject({ phase: RunPhase.RUNNING, outcome: RunOutcome.UNSPECIFIED });
});

/** A host that is on is switched off before it is forgotten. */
function expectPowerOff(host: Bench): void {
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.on).toBe(false);
}
