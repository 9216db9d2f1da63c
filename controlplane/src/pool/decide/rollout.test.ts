import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  HostState,
  PoolSpecSchema,
  RolloutPolicySchema,
  RolloutSlotState,
  userActor,
  type store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { historyOf } from '../ledger/history.ts';
import { rolloutPlan } from '../show/view.ts';
import { digest, image, Rollout, seen, startMs } from './rollout.fixture.ts';
import { queueOf, SlotCapacity } from './survey.ts';

const hourMs = 3_600_000;
const count = (value: number) => ({ amount: { case: 'count' as const, value } });
const percent = (value: number) => ({ amount: { case: 'percent' as const, value } });
const available = { state: HostState.AVAILABLE, image: '', digest: '' };

/** All hosts on A, which is the target; nothing is in progress. */
function settled(hosts: number, spec: ConstructorParameters<typeof Rollout>[1] = {}): Rollout {
  return new Rollout(hosts, spec).push('A');
}

test('garm-R1: of three hosts never more than one is out, and all reach the new image', () => {
  const pool = settled(3);
  expect(pool.condition('UpToDate')).toBe('AllUpdated');
  pool.push('B').finish();
  expect(pool.outMax).toBe(1);
  expect(pool.countOn('B')).toBe(3);
  expect(pool.condition('UpToDate')).toBe('AllUpdated');
});

test('the first host goes alone, then as many as may; percent round down, to at least 1', () => {
  const pool = settled(10, { rollout: { maxUnavailable: percent(35) } });
  pool.push('B');
  expect(pool.slots).toHaveLength(1);
  pool.end(pool.out);
  expect(pool.slots).toHaveLength(3);
  pool.finish();
  expect(pool.outMax).toBe(3);
  const small = settled(4, { rollout: { maxUnavailable: percent(10) } });
  expect(small.push('B').slots).toHaveLength(1);
});

test('garm-R3: a pool that may have none out, or is paused, resolves its image alone', () => {
  for (const amount of [count(0), percent(0)]) {
    const pool = settled(3, { rollout: { maxUnavailable: amount } });
    pool.push('B');
    expect(pool.out).toBe('');
    expect(pool.condition('UpToDate')).toBe('Stopped');
    expect(pool.record.pool?.status?.target?.digest).toBe(digest('B'));
  }
  const pool = settled(3, { rollout: { paused: true } });
  expect(pool.push('B').out).toBe('');
  expect(pool.condition('UpToDate')).toBe('Paused');
});

test('a pause lets what is under way end, and takes no new slot', () => {
  const pool = settled(3);
  pool.push('B');
  const first = pool.out;
  if (pool.spec.rollout === undefined) pool.spec.rollout = create(RolloutPolicySchema);
  pool.spec.rollout.paused = true;
  pool.reconcile();
  expect(pool.out).toBe(first);
  pool.end(first);
  expect([pool.out, pool.countOn('B')]).toEqual(['', 1]);
});

test('garm-R5: a host that is approved for B and has not begun goes to C, approved again', () => {
  const pool = settled(3, { rollout: { gate: { approval: true } } });
  pool.push('B');
  const [slot] = pool.slots;
  expect(slot).toMatchObject({ state: RolloutSlotState.GATE, image: image('B') });
  if (slot !== undefined) slot.approvedBy = 'user:ann';
  pool.push('C');
  const [next] = pool.slots;
  expect(next).toMatchObject({
    ...{ state: RolloutSlotState.GATE, image: image('C'), approvedBy: '' },
  });
  expect(pool.countOn('A')).toBe(3);
});

test('an approved host goes; one that nobody approves gives its slot back, and waits again', () => {
  const pool = settled(2, {
    rollout: { gate: { approval: true, deadline: durationFromMs(hourMs) } },
  });
  pool.push('B');
  expect(pool.condition('UpToDate')).toBe('WaitingForApproval');
  const first = pool.out;
  pool.nowMs += hourMs;
  pool.reconcile();
  expect(pool.out).not.toBe(first);
  for (const slot of pool.slots) slot.approvedBy = 'user:ann';
  pool.reconcile();
  expect(pool.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
  pool.end(pool.out);
  // The host without an approval waits at the gate again, and its failure does not count.
  pool.nowMs += hourMs / 2;
  expect(pool.reconcile().out).toBe(first);
  expect(pool.surveyed().failedCount).toBe(0);
});

test('garm-R7: a host that joins on an older image waits for its slot; its history stays', () => {
  const pool = new Rollout(3, { rollout: { maxUnavailable: count(1) } }, available);
  pool.push('A').finish();
  pool.push('B').finish();
  const before = historyOf([...pool.ledger.values()], pool.hosts, { limit: 10, target: '' });
  pool.hosts.push(seen(4), seen(5));
  pool.reconcile();
  expect(pool.condition('UpToDate')).toBe('RolloutInProgress');
  expect(pool.slots).toHaveLength(1);
  const after = historyOf([...pool.ledger.values()], pool.hosts, { limit: 10, target: '' });
  expect(after.map((each) => [each.digest, each.hostCount])).toEqual(
    before.map((each) => [each.digest, each.hostCount]),
  );
  pool.finish();
  expect([pool.countOn('B'), pool.condition('UpToDate')]).toEqual([5, 'AllUpdated']);
});

test('garm-R9: a host written and not healthy keeps its slot, and is not in the history', () => {
  const pool = settled(3);
  pool.push('B');
  const name = pool.out;
  pool.end(name, 'succeeded', { illness: { kind: 'fault', text: 'powerLost: it went off' } });
  expect(pool.slots[0]).toMatchObject({ host: `hosts/${name}`, state: RolloutSlotState.PROVING });
  expect(pool.ledger.size).toBe(0);
  pool.set(Number(name.slice(1)), { illness: undefined });
  pool.reconcile();
  expect(pool.out).not.toBe(name);
  expect(pool.ledger.size).toBe(1);
});

test('garm-R11: a new image lifts the halt, and what is broken goes first', () => {
  const pool = settled(6, {
    rollout: { maxUnavailable: count(2), failureThreshold: count(2) },
  });
  pool.push('B');
  const first = pool.out;
  pool.end(first, 'failedWriting');
  expect(pool.condition('Degraded')).toBe('HostFailed');
  const second = pool.out;
  expect(second).not.toBe(first);
  pool.end(second, 'failedWriting');
  expect(pool.condition('UpToDate')).toBe('Halted');
  expect(pool.condition('Degraded')).toBe('RolloutHalted');
  expect(pool.out).toBe('');
  pool.push('C');
  expect(pool.condition('UpToDate')).toBe('RolloutInProgress');
  expect([first, second]).toContain(pool.out);
  pool.finish();
  expect(pool.countOn('C')).toBe(6);
  expect(pool.condition('Degraded')).toBe('Healthy');
});

test('garm-R13: a failure before a host left its image does not count, and is tried again', () => {
  const pool = settled(4, { rollout: { failureThreshold: count(1) } });
  pool.push('B');
  const first = pool.out;
  pool.end(first, 'failedBefore');
  expect(pool.condition('UpToDate')).toBe('RolloutInProgress');
  expect(pool.out).not.toBe(first);
  pool.finish();
  expect(pool.countOn('B')).toBe(3);
  pool.nowMs += hourMs;
  pool.reconcile().finish();
  expect(pool.countOn('B')).toBe(4);
});

test('garm-R15: a host not healthy in time has failed, and counts; a late return heals it', () => {
  const pool = settled(3, { rollout: { maxUnavailable: count(3), failureThreshold: count(1) } });
  pool.push('B');
  const name = pool.out;
  pool.end(name, 'succeeded', { illness: { kind: 'fault', text: 'powerLost: it went off' } });
  pool.nowMs += 16 * 60_000;
  pool.reconcile();
  expect(pool.condition('UpToDate')).toBe('Halted');
  expect(pool.messageOf('Degraded')).toMatch(/; hosts\/h\d: .*powerLost: it went off$/);
  expect([pool.out, pool.ledger.size]).toEqual(['', 0]);
  pool.set(Number(name.slice(1)), { illness: undefined });
  pool.reconcile();
  expect(pool.ledger.size).toBe(1);
  expect(pool.slots).toHaveLength(2);
  pool.finish();
  expect(pool.countOn('B')).toBe(3);
});

test('a host that failed on an image is not tried on it again by itself', () => {
  const pool = new Rollout(3, {}, available);
  pool.push('A');
  const first = pool.out;
  pool.end(first, 'failedWriting');
  pool.finish();
  pool.nowMs += 24 * hourMs;
  pool.reconcile();
  expect([pool.countOn('A'), pool.out]).toEqual([2, '']);
  expect(pool.messageOf('Degraded')).toContain(`hosts/${first}`);
});

test('garm-R19: a repeated pass, from the record alone, changes no slot and adds none', () => {
  const pool = settled(8, { rollout: { maxUnavailable: count(3) } });
  pool.push('B');
  pool.end(pool.out);
  const { out } = pool;
  const bytes = JSON.stringify(pool.slots.map(({ host, number }) => `${host} ${number}`));
  for (let again = 0; again < 5; again++) pool.reconcile();
  expect(pool.out).toBe(out);
  expect(JSON.stringify(pool.slots.map(({ host, number }) => `${host} ${number}`))).toBe(bytes);
});

test('the order follows from names and digest: two pools that see the same go the same way', () => {
  const [one, two] = [settled(9), settled(9)];
  two.hosts.reverse();
  const order = (pool: Rollout) => {
    const hosts: string[] = [];
    for (pool.push('B'); pool.out !== ''; pool.end(pool.out)) hosts.push(pool.out);
    return hosts;
  };
  expect(order(one)).toHaveLength(9);
  const again = settled(9);
  again.push('B');
  expect(order(two)[0]).toBe(again.out);
});

test('garm-R23: outside its windows nobody in service is taken; who never ran may be', () => {
  const windows = [{ cron: '0 2 * * *', duration: durationFromMs(hourMs), timeZone: '' }];
  const pool = settled(2, { rollout: { windows } });
  pool.push('B');
  expect([pool.out, pool.condition('UpToDate')]).toEqual(['', 'WaitingForWindow']);
  expect(pool.nextPassMs).toBe(startMs + 14 * hourMs);
  pool.hosts.push(seen(3, available));
  expect(pool.reconcile().out).toBe('h3');
  pool.end('h3');
  expect(pool.out).toBe('');
  pool.nowMs = startMs + 14 * hourMs;
  pool.reconcile();
  expect(pool.slots).toHaveLength(1);
  // A deployment that has begun may end after the window.
  pool.nowMs += 2 * hourMs;
  pool.end(pool.out);
  expect([pool.out, pool.countOn('B')]).toEqual(['', 2]);
});

test('garm-R25: waves that select pinned hosts alone are empty ones, and told as such', () => {
  const waves = [{ name: 'canary', hosts: { names: ['hosts/h2'] } }];
  const pool = settled(3, { rollout: { waves }, pins: { 'hosts/h2': image('A') } });
  pool.push('B');
  expect(pool.surveyed()).toMatchObject({
    stop: undefined,
    warnings: ['no host goes in wave canary'],
  });
});

test('garm-R25: waves go one after the other, an empty one is skipped; all empty, it stops', () => {
  const waves = [
    { name: 'none', hosts: { labels: { pool: 'q' } } },
    { name: 'two', hosts: { names: ['hosts/h3', 'hosts/h4'] } },
  ];
  const pool = settled(6, { rollout: { waves, maxUnavailable: count(6) } });
  pool.push('B');
  expect(['h3', 'h4']).toContain(pool.out);
  expect(pool.messageOf('UpToDate')).toMatch(/^0 of 6 hosts .*; no host goes in wave none$/);
  expect(rolloutPlan({ ...pool, ledger: [] }).warnings).toEqual(['no host goes in wave none']);
  pool.end(pool.out);
  expect(['h3', 'h4']).toContain(pool.out);
  pool.end(pool.out);
  expect(pool.slots).toHaveLength(4);
  const empty = settled(3, { rollout: { waves: waves.slice(0, 1) } });
  expect(empty.push('B').out).toBe('');
  expect(empty.condition('Degraded')).toBe('WavesEmpty');
});

test('a slot is free only when its host has been healthy for the whole soak', () => {
  const pool = settled(3, { rollout: { soak: durationFromMs(hourMs) } });
  pool.push('B');
  const first = pool.out;
  pool.end(first);
  expect(pool.out).toBe(first);
  expect(pool.ledger.size).toBe(1);
  expect(pool.nextPassMs).toBe(pool.nowMs + 15 * 60_000);
  pool.nowMs += hourMs - 1;
  expect(pool.reconcile().out).toBe(first);
  pool.nowMs += 1;
  expect(pool.reconcile().out).not.toBe(first);
});

test('no more of a rack are out than its cap lets, and racks alternate', () => {
  const pool = settled(8, { rollout: { maxUnavailable: count(4), maxUnavailablePerRack: 1 } });
  pool.push('B');
  pool.end(pool.out);
  expect(pool.slots.map(({ rack }) => rack).toSorted()).toEqual(['racks/r1', 'racks/r2']);
  const queue = queueOf(pool.surveyed());
  const outage = new SlotCapacity(pool.surveyed());
  expect(outage.waitOf(queue[0] ?? missing())?.text).toContain('1 of 1 out there');
});

test('a host that is out for another reason counts as one of those that may be out', () => {
  const pool = settled(4, { rollout: { maxUnavailable: count(1) } });
  pool.set(2, {
    illness: { kind: 'fault', text: 'powerLost: it went off' },
    image: image('B'),
    digest: digest('B'),
  });
  pool.push('B');
  expect(pool.slots).toHaveLength(0);
  const queue = queueOf(pool.surveyed());
  const outage = new SlotCapacity(pool.surveyed());
  expect(outage.waitOf(queue[0] ?? missing())?.text).toContain('waits for a slot: 1 of 1 out');
  pool.set(2, { illness: undefined });
  pool.reconcile().finish();
  expect(pool.countOn('B')).toBe(4);
});

test('a broken host is written first, for it is out already', () => {
  const pool = settled(4);
  pool.set(2, { illness: { kind: 'fault', text: 'powerLost: it went off' } });
  expect(pool.push('B').out).toBe('h2');
});

test('garm-R27: a host that leaves at the gate goes at once, and after its run otherwise', () => {
  const pool = settled(2, { rollout: { gate: { approval: true } } });
  pool.push('B');
  const n = Number(pool.out.slice(1));
  pool.set(n, { labels: {} });
  pool.reconcile();
  expect(pool.host(n).claimedBy).toBeUndefined();
  expect(pool.out).not.toBe(`h${n}`);
  for (const slot of pool.slots) slot.approvedBy = 'user:ann';
  pool.reconcile();
  const m = Number(pool.out.slice(1));
  pool.set(m, { labels: {} });
  pool.reconcile();
  expect([pool.out, pool.host(m).claimedBy]).toEqual([`h${m}`, 'pools/p']);
  pool.end(`h${m}`);
  expect([pool.out, pool.host(m).claimedBy]).toEqual(['', undefined]);
  expect(pool.ledger.size).toBe(1);
});

test('garm-R29: a host that two pools want whole is held by neither; the others go on', () => {
  const pool = new Rollout(3);
  const spec = create(PoolSpecSchema, { hosts: { names: ['hosts/h2'] } });
  pool.others = [{ name: 'pools/q', spec }];
  pool.push('B').finish();
  expect(pool.host(2).claimedBy).toBeUndefined();
  expect(pool.condition('Degraded')).toBe('HostConflict');
  expect(pool.messageOf('Degraded')).toContain('hosts/h2 is selected by pools/q, too');
  expect(pool.countOn('B')).toBe(2);
  // A pool with a size leaves it to one without, and takes nothing from it.
  spec.size = 1;
  pool.reconcile().finish();
  expect(pool.countOn('B')).toBe(3);
});

test.each([
  { own: undefined, theirs: undefined, takes: false },
  { own: undefined, theirs: 1, takes: true },
  { own: 3, theirs: undefined, takes: false },
  { own: 3, theirs: 1, takes: true },
])('a host that another pool selects too goes by sizes: own $own, theirs $theirs', (row) => {
  const pool = new Rollout(3, row.own === undefined ? {} : { size: row.own }, available);
  const size = row.theirs === undefined ? {} : { size: row.theirs };
  const spec = create(PoolSpecSchema, { hosts: { names: ['hosts/h2'] }, ...size });
  pool.others = [{ name: 'pools/q', spec }];
  pool.push('A').finish();
  expect(pool.host(2).claimedBy).toBe(row.takes ? 'pools/p' : undefined);
  // The pool that holds it keeps it.
  pool.others = [];
  pool.reconcile().finish();
  pool.others = [
    { name: 'pools/q', spec: create(PoolSpecSchema, { hosts: { names: ['hosts/h2'] } }) },
  ];
  pool.reconcile();
  expect(pool.host(2).claimedBy).toBe('pools/p');
});

test('a pool never takes what somebody else claims, and one with a size takes no more', () => {
  const pool = new Rollout(5, { size: 2 }, available);
  pool.set(1, { claimedBy: userActor('ann') });
  pool.push('A').finish();
  expect(pool.record.members).toHaveLength(2);
  expect([pool.countOn('A'), pool.host(1).claimedBy]).toEqual([2, 'user:ann']);
  const before = pool.record.members.map(({ host }) => host);
  pool.spec.size = 3;
  pool.reconcile().finish();
  expect(pool.record.members.map(({ host }) => host)).toEqual(expect.arrayContaining(before));
  expect(pool.countOn('A')).toBe(3);
});

test('garm-R31: a pool that is deleted lets runs end, keeps no slot, gives hosts back', () => {
  const pool = settled(3);
  pool.push('B');
  const first = pool.out;
  pool.record.deletion = create(AbortSchema, { by: 'user:ann' });
  pool.reconcile();
  expect(pool.out).toBe(first);
  pool.end(first);
  expect([pool.out, pool.record.members.length]).toEqual(['', 0]);
  expect(pool.hosts.every(({ claimedBy }) => claimedBy === undefined)).toBe(true);
  expect(pool.ledger.size).toBe(1);
});

test('a pin keeps a host to its own image, whatever the pool rolls out', () => {
  const pool = settled(3, { pins: { 'hosts/h2': image('P') } });
  pool.push('B').finish();
  expect(pool.host(2).digest).toBe(digest('P'));
  expect([pool.countOn('B'), pool.condition('UpToDate')]).toEqual([2, 'AllUpdated']);
});

test('rollback, when wanted, goes back from what failed, and stays there until a new image', () => {
  const policy = { maxUnavailable: count(2), failureThreshold: count(2), rollback: true };
  const pool = settled(5, { rollout: policy });
  pool.push('B');
  pool.end(pool.out, 'failedWriting');
  pool.end(pool.out, 'failedWriting');
  expect(pool.condition('Degraded')).toBe('RolledBack');
  // Two are broken and out already: they are healed at once, and no other host is touched.
  expect(pool.slots.map((slot) => slot.image)).toEqual([image('A'), image('A')]);
  pool.finish();
  expect(pool.countOn('A')).toBe(5);
  pool.push('B');
  expect([pool.out, pool.countOn('A')]).toEqual(['', 5]);
  pool.push('C').finish();
  expect([pool.countOn('C'), pool.condition('Degraded')]).toEqual([5, 'Healthy']);
});

test('a pool without the rollback setting does not go back', () => {
  const pool = settled(3, { rollout: { maxUnavailable: count(3), failureThreshold: count(1) } });
  pool.push('B');
  pool.end(pool.out, 'failedWriting');
  expect([pool.condition('UpToDate'), pool.out]).toEqual(['Halted', '']);
});

test('conditions keep their time while nothing about them changes', () => {
  const pool = settled(3);
  const since = () =>
    pool.record.pool?.status?.conditions.map(({ type, since: at }) => [type, at?.seconds]);
  const before = since();
  pool.nowMs += hourMs;
  pool.reconcile().push('A');
  expect(since()).toEqual(before);
  expect(pool.record.pool?.status?.target?.since?.seconds).toBe(BigInt(startMs / 1_000));
});

test('garm-H1, garm-H3: the history counts each host once, and when it was deployed last', () => {
  const pool = new Rollout(12, { rollout: { maxUnavailable: count(4) } }, available);
  pool.push('A').finish();
  pool.push('B').finish();
  const history = () =>
    historyOf([...pool.ledger.values()], pool.hosts, { limit: 10, target: digest('B') });
  expect(history().map((each) => [each.digest, each.version, each.hostCount])).toEqual([
    [digest('B'), 'v-B', 12],
    [digest('A'), 'v-A', 12],
  ]);
  expect(Number(history()[0]?.lastDeployed?.seconds) * 1_000).toBe(pool.nowMs);
  const firstOfB = history()[0]?.lastDeployed?.seconds ?? 0n;
  pool.push('A').finish();
  pool.push('B').finish();
  const [again] = history();
  expect(again).toMatchObject({ digest: digest('B'), hostCount: 12, currentHosts: 12 });
  expect((again?.lastDeployed?.seconds ?? 0n) > firstOfB).toBe(true);
});

test('the history is the same when all that led to it is looked at once more', () => {
  const pool = new Rollout(5, { rollout: { maxUnavailable: count(2) } }, available);
  pool.push('A').finish();
  const entries = [...pool.ledger.values()];
  const of = (given: readonly wire.DeploymentRecord[]) =>
    historyOf(given, pool.hosts, { limit: 3, target: digest('A') });
  expect(of([...entries, ...entries].toReversed())).toEqual(of(entries));
  for (let round = 0; round < 3; round++) pool.reconcile();
  expect([...pool.ledger.values()]).toEqual(entries);
});

function missing(): never {
  throw new Error('nobody waits');
}
