/** Which deployments are called off while the image is fetched. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  asRunNumber,
  DeletionMode,
  HostState,
  PoolAmountSchema,
  RolloutSlotSchema,
  RolloutSlotState,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, done } from '../../host/testing/bench.ts';
import { type SeenHost, seenHost } from '../facts/seen.ts';
import {
  changes,
  fetching,
  hourMs,
  pool,
  poolOf,
  provisioning,
  reconcile,
  runOf,
  status,
  stepAt,
  write,
} from './call-off.fixture.ts';
import { decidePool } from './decide.ts';
import { digest, image, Rollout, seen as seenAs } from './rollout.fixture.ts';

test.each(Object.entries(changes))(
  'garm-R5, garm-R27, garm-R31: a host whose image is still fetched stays in service: %s',
  async (reason, change) => {
    const host = fetching();
    const { record, asked } = await reconcile(
      host,
      poolOf(host, (each) => change(each, host)),
    );
    expect(asked).toEqual(['abort']);
    expect(runOf(host)?.abort).toMatchObject({ by: pool, reason });
    // Once is enough, and the slot stays until the run has ended.
    const again = await reconcile(host, record);
    expect(again.asked).toEqual([]);
    expect(again.record.pool?.status?.slots).toHaveLength(1);
    host.report(done);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
    expect(status(host)).toMatchObject({ image: image('A'), poweredOn: true, faults: [] });
    expect(host.record.pendingPower).toBeUndefined();
    const after = await reconcile(host, again.record);
    expect(after.record.failures).toEqual([]);
    expect(after.record.pool?.status?.slots.filter(({ number }) => number === 1n)).toEqual([]);
  },
);

const { 'the window has shut': shut, ...others } = changes;

test.each(Object.entries(others))(
  'garm-R5, garm-R31: an available host whose image is still fetched is not written: %s',
  async (reason, change) => {
    const host = provisioning();
    const { record, asked } = await reconcile(
      host,
      poolOf(host, (each) => change(each, host)),
    );
    expect([asked, runOf(host)?.abort?.reason]).toEqual([['abort'], reason]);
    host.report(done);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
    expect(status(host)).toMatchObject({ state: HostState.AVAILABLE, image: '', faults: [] });
    const after = await reconcile(host, record);
    expect(after.record.failures).toEqual([]);
    expect(after.record.pool?.status?.slots.filter(({ number }) => number === 1n)).toEqual([]);
  },
);

test('a shut window calls off no available host, and a stopped pool none that is out', async () => {
  const host = provisioning();
  const late = poolOf(host, (each) => shut?.(each, host));
  expect((await reconcile(host, late)).asked).toEqual([]);
  const asked: Record<string, readonly string[]> = {};
  for (const [reason, change] of Object.entries(changes)) {
    const broken = fetching();
    status(broken).poweredOn = false;
    const record = poolOf(broken, (each) => change(each, broken));
    asked[reason] = (await reconcile(broken, record)).asked;
  }
  expect(asked).toEqual({
    ...Object.fromEntries(Object.keys(changes).map((reason) => [reason, []])),
    'its image is not wanted any more': ['abort'],
    'it has left the pool': ['abort'],
  });
});

test('a host whose pool may go on, or that is being switched off, is left to go on', async () => {
  const host = fetching();
  expect((await reconcile(host, poolOf(host))).asked).toEqual([]);
  host.report(done);
  expect(stepAt(host)).toBe('power.off');
  const paused = poolOf(host, (record) => changes['it is paused']?.(record, host));
  expect((await reconcile(host, paused)).asked).toEqual([]);
});

/** The pool of that host and of others, some of which may be out. */
function poolWith(host: Bench, others: readonly SeenHost[], max = 1) {
  return poolOf(host, ({ members, pool: { spec } = {} }) => {
    for (const { name, uid } of others) {
      members.push(create(wire.PoolMemberSchema, { host: name, hostUid: uid }));
      spec?.hosts?.names.push(name);
    }
    const amount = { case: 'count', value: max } as const;
    if (spec?.rollout) spec.rollout.maxUnavailable = create(PoolAmountSchema, { amount });
  });
}

/** Another host that also runs A, with these changes. */
const other = (n: number, about: Partial<SeenHost> = {}) =>
  seenAs(n, { claimedBy: pool, keptBy: { kind: 'run', text: 'busy: its own' }, ...about });

test('a host whose image is fetched stays until the others that are out are back', async () => {
  const host = fetching();
  const out = other(2, { illness: { kind: 'off', text: 'it is off' } });
  const { record, asked } = await reconcile(host, poolWith(host, [out]), host.nowMs, [out]);
  expect(asked).toEqual(['abort']);
  expect(runOf(host)?.abort?.reason).toBe('waits for hosts/h2, which is out');
  host.report(done);
  expect([runOf(host)?.outcome, status(host).poweredOn]).toEqual([RunOutcome.CANCELLED, true]);
  const after = await reconcile(host, record, host.nowMs, [out]);
  expect([after.record.pool?.status?.slots, after.record.failures]).toEqual([[], []]);
  const back = await reconcile(host, after.record, host.nowMs, [other(2)]);
  expect(back.record.pool?.status?.slots).toMatchObject([{ host: 'hosts/h1' }]);
});

test('the later of two fetches makes room, and the other goes on', async () => {
  const host = fetching();
  const run = create(RunSchema, {
    number: asRunNumber(7),
    phase: RunPhase.RUNNING,
    kind: RunKind.REIMAGE,
  });
  const later = other(2, { run, isStillIn: true });
  const out = other(3, { illness: { kind: 'off', text: 'it is off' } });
  const record = poolWith(host, [later, out], 2);
  const slot = {
    number: 2n,
    host: later.name,
    hostUid: later.uid,
    image: image('B'),
    run: asRunNumber(7),
  };
  record.pool?.status?.slots.push(
    create(RolloutSlotSchema, { ...slot, state: RolloutSlotState.RUNNING }),
  );
  const called = (about: SeenHost) => {
    const hosts = [seenHost(host.record), about, out].flatMap((each) => each ?? []);
    const step = decidePool(record, { hosts, others: [], news: new Map(), nowMs: host.nowMs });
    return [...step.callOffs.keys()];
  };
  expect(called(later)).toEqual([later.uid]);
  const abort = create(AbortSchema, { by: pool });
  const aborted = create(RunSchema, { ...run, abort });
  expect(called({ ...later, run: aborted })).toEqual([]);
  expect(called({ ...later, isStillIn: false, service: 'out' })).toEqual(['u1']);
});

test('a host in service is not called off for a well one that never served', async () => {
  const host = fetching();
  const out = other(2, { illness: { kind: 'off', text: 'it is off' } });
  const onTarget = other(3, { image: image('B'), digest: digest('B') });
  const free = { state: HostState.AVAILABLE, service: 'out', image: '', digest: '' } as const;
  const next = other(4, { ...free, keptBy: undefined });
  const record = poolWith(host, [out, onTarget, next], 2);
  const first = await reconcile(host, record, host.nowMs, [out, onTarget, next]);
  const slots = first.record.pool?.status?.slots;
  expect(slots).toMatchObject([{ host: 'hosts/h1' }, { host: next.name, kind: RunKind.PROVISION }]);
  expect([first.asked, runOf(host)?.abort]).toEqual([[], undefined]);
  // Nor while it proves a running image; but it does if it is out then.
  for (const slot of slots?.slice(1) ?? []) slot.state = RolloutSlotState.PROVING;
  const on = { ...next, ...onTarget, name: next.name, uid: next.uid };
  const soaking = await reconcile(host, first.record, host.nowMs, [out, onTarget, on]);
  expect(soaking.asked).toEqual([]);
  const ill = { ...on, illness: { kind: 'off', text: 'it is off' }, service: 'out' } as const;
  expect((await reconcile(host, first.record, host.nowMs, [out, onTarget, ill])).asked).toEqual([
    'abort',
  ]);
});

test('a silent host waits for the others of its rack, as it does once its image is fetched', () => {
  const rollout = {
    maxUnavailable: create(PoolAmountSchema, { amount: { case: 'count', value: 3 } }),
    maxUnavailablePerRack: 1,
  };
  const fleet = new Rollout(4, { rollout }).push('A');
  for (const n of [1, 3]) fleet.set(n, { service: 'unseen', rack: 'racks/r1' });
  fleet.set(3, { keptBy: { kind: 'bmcFault', text: 'its BMC is silent' } });
  for (const n of [2, 4]) fleet.set(n, { keptBy: { kind: 'hold', text: 'held' } });
  fleet.push('B');
  expect(fleet.out).toBe('');
});

test('a person’s abort of a fetch still is a try that failed', async () => {
  const host = fetching();
  host.request({ kind: 'abort', reason: 'not now' });
  host.report(done);
  const { record } = await reconcile(host, poolOf(host));
  expect(record.failures).toMatchObject([{ attempts: 1, counted: false }]);
});

test('an image after the window takes no host out of service, and is no failure', async () => {
  const host = fetching(bench().nowMs + hourMs);
  const record = poolOf(host);
  host.nowMs += hourMs;
  host.report(done);
  expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
  expect(runOf(host)?.steps[1]).toMatchObject({ name: 'power.off', attempt: 0 });
  expect(runOf(host)?.error?.message).toContain('could not be taken out before');
  expect(status(host)).toMatchObject({ image: image('A'), faults: [] });
  expect(host.record.pendingPower).toBeUndefined();
  expect((await reconcile(host, record)).record.failures).toEqual([]);
});

test('an image that comes within its window takes the host out, however long that lasts', () => {
  const host = fetching(bench().nowMs + hourMs);
  host.nowMs += hourMs - 1;
  host.report(done);
  expect(stepAt(host)).toBe('power.off');
  host.nowMs += hourMs;
  write(host);
});

const frozen = { of: 'racks/r1', by: 'user:ann', reason: 'a drill', at: timestampFromMs(0) };
/** What delays the order to switch a host off. */
const waits = { agent: { session: undefined }, freeze: { freeze: frozen } };

test.each(Object.entries(waits))(
  'a host that waits for the end of its %s past that of its window stays in service',
  (reason, wait) => {
    const host = fetching(bench().nowMs + hourMs);
    const { snapshot } = host;
    host.snapshot = { ...snapshot, ...wait };
    host.report(done);
    expect(runOf(host)?.waiting?.reason).toBe(reason);
    host.nowMs += hourMs;
    host.snapshot = snapshot;
    host.apply({ kind: 'tick' });
    expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
    expect(host.record.pendingPower).toBeUndefined();
  },
);

test('a host called off while a freeze keeps it in service is not switched at all', async () => {
  const host = fetching();
  host.snapshot = { ...host.snapshot, freeze: frozen };
  host.report(done);
  expect(stepAt(host)).toBe('power.off');
  const paused = poolOf(host, (record) => changes['it is paused']?.(record, host));
  expect((await reconcile(host, paused)).asked).toEqual(['abort']);
  expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
  expect(runOf(host)?.steps.map(({ attempt }) => attempt)).toEqual(
    runOf(host)?.steps.map((_, index) => (index === 0 ? 1 : 0)),
  );
  expect(host.record.pendingPower).toBeUndefined();
});

const burnt = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt' } as const;

/** Its agent is lost for good during the write, and a person aborts the run. */
function orphaned(): Bench {
  const host = fetching();
  write(host);
  expect(triedToDelete(host)).toContain('claimed by pools/p');
  host.snapshot = { ...host.snapshot, session: undefined, agentSeenMs: host.nowMs };
  host.nowMs += 24 * hourMs;
  host.apply({ kind: 'tick' });
  host.request({ kind: 'abort', reason: 'its rack has burnt' });
  host.nowMs += hourMs;
  host.apply({ kind: 'tick' });
  expect(runOf(host)?.phase).not.toBe(RunPhase.ENDED);
  return host;
}

function triedToDelete(host: Bench): string {
  const by = { actor: userActor('ann') };
  const outcome = host.try({ kind: 'request', request: burnt, by });
  return outcome.kind === 'refused' ? outcome.refusal.message : '';
}

test('garm-D13: a host whose agent is gone in mid-run goes by force, then its pool', async () => {
  const host = orphaned();
  const kept = poolOf(host, (each) => changes['user:ann asked for its deletion']?.(each, host));
  const { record } = await reconcile(host, kept);
  expect(record.members).toHaveLength(1);
  host.request(burnt);
  for (let calls = 0; !host.removed && calls < 3; calls++) {
    host.nowMs += 60_000;
    host.apply({ kind: 'tick' });
  }
  expect(host.removed).toBe(true);
  const after = decidePool(record, {
    hosts: [],
    others: [],
    news: new Map(),
    nowMs: host.nowMs,
  });
  expect(after.record).toMatchObject({ members: [], pool: { status: { slots: [] } } });
});

test('a claim that a person ends is not taken again while only a run keeps its host', async () => {
  const host = orphaned();
  host.request({ kind: 'unclaim', reason: 'the pool cannot' });
  expect((await reconcile(host, poolOf(host))).asked).toEqual(['claim']);
  host.request({ kind: 'unclaim', reason: 'the pool cannot' });
  const left = poolOf(host, (each) => changes['it has left the pool']?.(each, host));
  const deleted = poolOf(host, (each) => changes['user:ann asked for its deletion']?.(each, host));
  for (const kept of [left, deleted]) {
    const { record, asked } = await reconcile(host, kept);
    expect(record.members).toHaveLength(1);
    expect(asked).toEqual([]);
  }
});
