/** Deletions of one host: what is asked of agent and BMC, what is refused, what is left behind. */
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  failed,
  verified,
} from '@rackwright/controlplane/testing';
import {
  type AbandonedResource,
  ClaimSchema,
  DeletionMode,
  HoldSchema,
  HoldScope,
  HostGoal,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  agentLeaves,
  driveToAvailable,
  driveToWrite,
  explained,
  pass,
  refusalOf,
  runOf,
  sentBy,
  statusOf,
} from './words.ts';

type Effects = ReturnType<Bench['apply']>;

const minuteMs = 60_000;
const normal = { kind: 'delete', reason: 'sold' } as const;
const forced = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt down' } as const;

/** A verified host that rests in manageable, and is on. */
function resting(spec: Parameters<typeof bench>[0] = {}): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE, ...spec });
  host.apply({ kind: 'tick' });
  host.report(verified());
  statusOf(host).poweredOn = true;
  return host;
}

function inState(state: HostState, spec: Parameters<typeof bench>[0] = {}): Bench {
  const host = resting(spec);
  statusOf(host).state = state;
  return host;
}

function leftBy(effects: Effects): AbandonedResource | undefined {
  return effects.flatMap((effect) => (effect.kind === 'abandon' ? [effect.resource] : []))[0];
}

function powerOrders(effects: Effects): string[] {
  return sentBy(effects).flatMap(({ id, kind }) => (kind.case === 'setPower' ? [id] : []));
}

test('garm-D1: a host without work is accepted, switched off, forgotten, gone, each once', () => {
  const host = resting();
  const effects = [...host.request(normal)];
  expect(statusOf(host).deletion).toMatchObject({ reason: 'sold', by: 'user:test' });
  effects.push(...host.report(done), ...host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(powerOrders(effects)).toHaveLength(1);
  expect(effects.filter(({ kind }) => kind === 'forget')).toHaveLength(1);
});

test.each<[string, () => Bench]>([
  [
    'cleaning',
    () => {
      const host = bench();
      driveToErase(host);
      return host;
    },
  ],
  [
    'being deployed',
    () => {
      const host = bench();
      driveToAvailable(host);
      host.request({ kind: 'provision', image: `registry.example/os@sha256:${'1'.repeat(64)}` });
      return host;
    },
  ],
  [
    'claimed',
    () => {
      const host = resting();
      statusOf(host).claim = create(ClaimSchema, { by: 'pools/web', reason: 'wave 2' });
      return host;
    },
  ],
])(
  'garm-D3: a host that is %s is refused alike, forced or not, and stays as it is',
  (_what, open) => {
    const host = open();
    const before = clone(store.HostRecordSchema, host.record);
    const refusal = refusalOf(host, normal);
    expect(refusal.message).toContain('busy: ');
    expect(refusalOf(host, forced)).toEqual(refusal);
    expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  },
);

test('garm-D5: a second delete succeeds, and orders nothing new', () => {
  const host = resting();
  host.request(normal);
  const { id } = host.operation();
  const before = host.record;
  expect(host.request(normal)).toEqual([]);
  expect(host.operation().id).toBe(id);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
});

test('garm-D7: a normal delete after a forced one succeeds, and it stays forced', () => {
  const host = resting();
  host.request(forced);
  host.request(normal);
  expect(statusOf(host).deletion).toMatchObject({
    mode: DeletionMode.FORCE,
    reason: 'burnt down',
  });
});

test('garm-D9: a normal delete is pending again after an error, with capped pauses', () => {
  const host = resting();
  host.request(normal);
  const pausesMs: number[] = [];
  for (let attempt = 1; attempt <= 12; attempt++) {
    host.report(failed('notApplied', 'the BMC is silent'));
    expect(explained(host).headline).toContain('pending delete: the deletion is tried again');
    expect(statusOf(host).lastError?.failure?.message).toBe('the BMC is silent');
    const next = statusOf(host).backoff?.nextAttemptTime;
    pausesMs.push(next === undefined ? 0 : timestampMs(next) - host.nowMs);
    pass(host, pausesMs.at(-1) ?? 0);
  }
  expect(pausesMs[3]).toBeGreaterThan(pausesMs[0] ?? 0);
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(60 * minuteMs);
  expect(Math.min(...pausesMs)).toBeGreaterThan(0);
});

test('garm-D11: a forced delete whose every call succeeds leaves no record', () => {
  const host = resting();
  host.request(forced);
  host.report(done);
  const effects = host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
  expect(effects.filter(({ kind }) => kind === 'abandon' || kind === 'tombstone')).toEqual([]);
});

test('garm-D19: a provisioning beyond its deadline ends, and what remains is cleaned', () => {
  const host = bench();
  driveToAvailable(host);
  host.request({ kind: 'provision', image: `registry.example/os@sha256:${'1'.repeat(64)}` });
  driveToWrite(host);
  pass(host, 3 * 60 * minuteMs);
  expect(runOf(host)).toMatchObject({ kind: RunKind.PROVISION, outcome: RunOutcome.TIMED_OUT });
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  pass(host, 60 * minuteMs);
  expect(runOf(host).kind).toBe(RunKind.CLEAN);
});

test('garm-D21: after a failed provisioning none comes before a clean has succeeded', () => {
  const host = bench();
  driveToAvailable(host);
  const provision = {
    kind: 'provision',
    image: `registry.example/os@sha256:${'1'.repeat(64)}`,
  } as const;
  host.request(provision);
  driveToWrite(host);
  host.report(failed('internal'));
  pass(host, 60 * minuteMs);
  expect(runOf(host).kind).toBe(RunKind.CLEAN);
  host.report(failed('internal', 'the clean fails as well'));
  expect(statusOf(host).dirty).toBe(true);
  expect(refusalOf(host, provision).message).toContain('only an available host');
});

test('garm-D25: a late success of an operation that is over changes nothing', () => {
  const host = resting();
  host.request(normal);
  const { id } = host.operation();
  host.report(failed('notApplied'));
  pass(host, 60 * minuteMs);
  expect(host.operation().id).not.toBe(id);
  const before = host.record;
  const effects = host.report(done, id);
  expect(effects).toEqual([
    { kind: 'answer', verdict: expect.objectContaining({ kind: 'stale' }) },
  ]);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
});

test('garm-D33: rejected credentials stop no forced delete, which says what it left', () => {
  const host = resting();
  host.request(forced);
  host.report(failed('authentication', 'the BMC rejects the password'));
  const left = leftBy(host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toEqual([
    'power: the host could not be switched off: the BMC rejects the password',
  ]);
  const busy = resting();
  statusOf(busy).claim = create(ClaimSchema, { by: 'pools/web' });
  expect(refusalOf(busy, forced).message).toContain('claimed by pools/web');
});

test('garm-D35: a delete is taken back before the removal has begun, and refused after', () => {
  const host = resting();
  const cancel = { kind: 'cancelDelete', reason: 'a mistake' } as const;
  host.request(normal);
  expect(refusalOf(host, cancel).message).toContain('removal has begun');
  host.report(failed('notApplied'));
  host.request(cancel);
  expect(statusOf(host).deletion).toBeUndefined();
  expect(runOf(host).phase).toBe(RunPhase.ENDED);
});

test('garm-D37: a newer version’s state is left alone and told, and force removes the host', () => {
  const host = resting();
  const future = 77 as HostState;
  statusOf(host).state = future;
  const before = clone(store.HostRecordSchema, host.record);
  expect(pass(host, 24 * 60 * minuteMs)).toEqual([]);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  expect(explained(host).headline).toContain('left alone: its state 77');
  agentLeaves(host);
  expect(leftBy(host.request(forced))?.leftBehind[0]).toContain('state 77');
  expect(host.removed).toBe(true);
});

test('metal3-37: a release under way ends, and the delete goes on without a failure', () => {
  const host = inState(HostState.PROVISIONED, { deletion: { keepData: true } });
  host.request({ kind: 'release', reason: 'no longer needed' });
  host.request(normal);
  expect(host.report(done)).toContainEqual({ kind: 'forget' });
  expect(statusOf(host).backoff).toBeUndefined();
});

test('metal3-43: where a policy keeps the power, a delete sends no power command', () => {
  for (const request of [normal, forced]) {
    const host = resting({ deletion: { keepPower: true } });
    const effects = host.request(request);
    expect(powerOrders(effects)).toEqual([]);
    expect(effects).toContainEqual({ kind: 'forget' });
  }
});

test('metal3-45: a host whose release is held stays as it is: its delete is refused', () => {
  const host = inState(HostState.PROVISIONED);
  const hold = { scope: HoldScope.RELEASE, by: 'user:ann', reason: 'still needed' };
  statusOf(host).holds.push(create(HoldSchema, hold));
  expect(refusalOf(host, normal).message).toContain('kept from release by user:ann: still needed');
  expect(statusOf(host).state).toBe(HostState.PROVISIONED);
});

test('metal3-35: an external host is forgotten, and its power stays as it is', () => {
  const host = inState(HostState.EXTERNAL);
  const effects = host.request(normal);
  expect(powerOrders(effects)).toEqual([]);
  host.apply({ kind: 'forgotten' });
  expect(host.removed).toBe(true);
});

test('metal3-39: forced, a delete goes on without its power-off, and says so', () => {
  const host = resting();
  host.request(normal);
  host.report(failed('notApplied', 'the BMC did nothing'));
  host.request(forced);
  host.report(failed('notApplied', 'the BMC did nothing'));
  const left = leftBy(host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toEqual([
    'power: the host could not be switched off: the BMC did nothing',
  ]);
});

test('metal3-41: without a credential a host that runs an image waits, unless it is forced', () => {
  const host = inState(HostState.PROVISIONED);
  host.snapshot = { ...host.snapshot, credentialVersion: undefined };
  host.request(normal);
  expect(explained(host).headline).toContain('its credential does not exist');
  host.request(forced);
  const left = leftBy(host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toEqual([
    expect.stringContaining('power: the host may be on and was not switched off'),
    expect.stringContaining('data: the host ran an image'),
  ]);
});

test('metal3-71: forced, what the agent answers to Forget is waited for once, not for ever', () => {
  const host = resting();
  statusOf(host).poweredOn = false;
  expect(host.request(forced)).toContainEqual({ kind: 'forget' });
  const left = leftBy(pass(host, minuteMs));
  expect(host.removed).toBe(true);
  expect(left?.fencePending).toBe(true);
});
