/** What stops a rollout, what lifts that, and the way back. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  DeploySpecSchema,
  HostSpecSchema,
  HostState,
  ImageRegistrySchema,
  PoolAmountSchema,
  RolloutSlotState,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainPool } from '../show/explain.ts';
import { digest, image, Rollout, seen } from './rollout.fixture.ts';
import { queueOf, SlotCapacity } from './survey.ts';

const hourMs = 3_600_000;
const count = (value: number) => ({ amount: { case: 'count' as const, value } });
const percent = (value: number) => ({ amount: { case: 'percent' as const, value } });
const available = { state: HostState.AVAILABLE, image: '', digest: '' };

function settled(hosts: number, spec: ConstructorParameters<typeof Rollout>[1] = {}): Rollout {
  return new Rollout(hosts, spec).push('A');
}

const policyOf = (pool: Rollout) => pool.spec.rollout ?? missing();
const numberOf = (name: string) => Number(name.replace(/^(hosts\/)?h/, ''));
const firstOut = (pool: Rollout) => pool.out.split(' ')[0] ?? missing();

/** The first host that is out fails during the write; returns its name. */
function failFirst(pool: Rollout): string {
  const first = firstOut(pool);
  pool.end(first, 'failedWriting');
  return first;
}

test.each([
  ['with the defaults', 10, {}],
  ['two at once, and a threshold that they never reach', 40, twoAtOnce()],
])('a rollout halts once as many hosts have failed as may be out: %s', (_, hosts, policy) => {
  const pool = settled(hosts, { rollout: policy }).push('B');
  while (pool.out !== '') failFirst(pool);
  const failed = pool.surveyed().failedCount;
  expect(failed).toBe(hosts === 40 ? 2 : 1);
  expect(pool.condition('UpToDate')).toBe('Halted');
  expect(pool.messageOf('Degraded')).toContain('out, as many as may be');
  expect(pool.messageOf('Degraded')).toContain(`failed on ${image('B')}`);
});

function twoAtOnce() {
  return { maxUnavailable: count(2), failureThreshold: percent(10) };
}

test('a pool that may roll back goes back from an image that loses its host', () => {
  const pool = settled(10, { rollout: { rollback: true } }).push('B');
  failFirst(pool);
  expect(pool.condition('Degraded')).toBe('RolledBack');
  pool.finish();
  expect(pool.countOn('A')).toBe(10);
});

test('a host that fails again or is ill by itself keeps no others from the way back', () => {
  const rollout = { failureThreshold: count(1), rollback: true };
  const pool = settled(6, { rollout }).push('B');
  pool.end(pool.out).end(pool.out);
  const onA = pool.hosts.filter((host) => host.digest === digest('A'));
  const broken = firstOut(pool);
  const ill = onA.find(({ name }) => name !== `hosts/${broken}`) ?? missing();
  pool.set(numberOf(ill.name), { illness: { kind: 'fault', text: 'powerLost: it is off' } });
  pool.end(broken, 'failedWriting');
  expect(pool.condition('Degraded')).toBe('RolledBack');
  expect(pool.out).toBe(broken);
  failFirst(pool);
  pool.finish();
  expect([pool.countOn('B'), pool.countOn('A')]).toEqual([0, 5]);
  expect(pool.outMax).toBe(1);
});

test('a rollback stops, too, when it loses hosts that were ready', () => {
  const rollout = { maxUnavailable: count(2), failureThreshold: count(2), rollback: true };
  const pool = settled(20, { rollout }).push('B');
  for (let good = 0; good < 8; good++) pool.end(firstOut(pool));
  failFirst(pool);
  failFirst(pool);
  expect(pool.condition('Degraded')).toBe('RolledBack');
  let lost = 0;
  for (; pool.out !== ''; lost++) failFirst(pool);
  // Two lost on B, two on the way back, and the one that was out with the last of them.
  expect(lost).toBeLessThanOrEqual(5);
  expect(pool.condition('Degraded')).toBe('RolloutHalted');
});

test('no host goes back to an image that only some hosts had', () => {
  const rollout = { maxUnavailable: count(2), failureThreshold: count(2), rollback: true };
  const pool = settled(20, { rollout }).push('B');
  for (let done = 0; done < 5; done++) pool.end(firstOut(pool));
  for (const { host } of pool.slots) pool.end(host.replace('hosts/', ''), 'failedBefore');
  policyOf(pool).paused = true;
  pool.reconcile().push('C').finish();
  policyOf(pool).paused = false;
  pool.reconcile();
  expect(pool.countOn('B')).toBeGreaterThanOrEqual(5);
  failFirst(pool);
  failFirst(pool);
  expect(pool.condition('Degraded')).toBe('RolledBack');
  pool.finish();
  expect(pool.countOn('A')).toBe(20);
});

test('a halt outlasts hosts that leave, and those that come; a changed policy lifts it', () => {
  const rollout = { maxUnavailable: count(5), failureThreshold: percent(20) };
  const pool = settled(10, { rollout }).push('B');
  const first = failFirst(pool);
  while (pool.condition('UpToDate') !== 'Halted') failFirst(pool);
  while (pool.out !== '') pool.end(firstOut(pool));
  const before = pool.countOn('B');
  pool.hosts.push(...Array.from({ length: 15 }, (_, index) => seen(20 + index)));
  pool.set(numberOf(first), { labels: {} });
  expect([pool.reconcile().out, pool.condition('UpToDate')]).toEqual(['', 'Halted']);
  expect(pool.countOn('B')).toBe(before);
  policyOf(pool).failureThreshold = create(PoolAmountSchema, count(4));
  pool.reconcile();
  expect(pool.condition('UpToDate')).toBe('RolloutInProgress');
});

test('a pin brings a failed host back in a halted rollout, but not in a paused one', () => {
  const pool = settled(4, { rollout: { failureThreshold: count(1) } }).push('B');
  const failed = failFirst(pool);
  policyOf(pool).paused = true;
  pool.spec.pins = { [`hosts/${failed}`]: image('A') };
  expect(pool.reconcile().out).toBe('');
  const mine = pool.surveyed().surveyedHosts.find(({ isPinned }) => isPinned);
  expect(mine && new SlotCapacity(pool.surveyed()).waitOf(mine)?.text).toBe('it is paused');
  policyOf(pool).paused = false;
  expect(pool.reconcile().out).toBe(failed);
  pool.end(failed);
  expect([pool.countOn('A'), pool.out, pool.condition('UpToDate')]).toEqual([4, '', 'Halted']);
});

test('a pin goes while the tag is not resolved, through the gate as the others', () => {
  const gate = { approval: true };
  const pool = new Rollout(2, { rollout: { gate }, pins: { 'hosts/h2': image('P') } }).reconcile();
  expect([pool.out, pool.condition('UpToDate')]).toEqual(['h2', 'NoTarget']);
  for (const slot of pool.slots) slot.approvedBy = 'user:ann';
  pool.reconcile().end('h2');
  expect([pool.countOn('P'), pool.out]).toEqual([1, '']);
});

test('a halt stands, too, when no wave selects anybody any more', () => {
  const waves = [{ name: 'canary', hosts: { labels: { role: 'canary' } } }];
  const pool = settled(4, { rollout: { waves, failureThreshold: count(1) } });
  pool.set(1, { labels: { ...pool.hosts[0]?.labels, role: 'canary' } });
  pool.reconcile().push('B');
  const failed = failFirst(pool);
  expect([failed, pool.condition('UpToDate')]).toEqual(['h1', 'Halted']);
  pool.set(1, { labels: {} });
  pool.reconcile();
  pool.set(2, { labels: { ...pool.hosts[1]?.labels, role: 'canary' } });
  expect([pool.reconcile().out, pool.condition('UpToDate')]).toEqual(['', 'Halted']);
});

test('a wave that is lost as a whole opens no other; one that waits names its host', () => {
  const waves = [{ name: 'canary', hosts: { names: ['hosts/h1', 'hosts/h2'] } }];
  const rollout = { waves, maxUnavailable: count(3), failureThreshold: count(4) };
  const pool = settled(6, { rollout }).push('B');
  failFirst(pool);
  failFirst(pool);
  expect([pool.out, pool.condition('UpToDate')]).toEqual(['', 'Halted']);
  expect(pool.messageOf('Degraded')).toContain(`all hosts of wave canary failed on ${image('B')}`);

  const held = settled(6, { rollout });
  held.set(2, { keptBy: { kind: 'hold', text: 'its work is held by ann: disks' } });
  held.push('B').finish();
  const surveyed = held.surveyed();
  const [next] = queueOf(surveyed);
  const why = new SlotCapacity(surveyed).waitOf(next ?? missing())?.text;
  expect(why).toBe('its wave waits for hosts/h2 of wave canary');
  const told = explainPool(held.record, held.hosts, new Map(), held.nowMs);
  expect(told.blocker).toBe('hosts/h2 of wave canary');
});

test('a halt is explained once, with what the pool waits for and who has failed', () => {
  const pool = settled(3, {}).push('B');
  failFirst(pool);
  const { blocker, causes } = explainPool(pool.record, pool.hosts, new Map(), pool.nowMs);
  expect(blocker).toBe('another image, or a failed host to be well again');
  const told = causes.map(({ text }) => text);
  expect(told).toHaveLength(2);
  expect(told[0]).toBe(`1 host failed on ${image('B')} and is out, as many as may be`);
  expect(told[1]).toMatch(/^hosts\/h\d+: /);
});

test('an image that is wanted no more holds no slot, in its soak or while it is ill', () => {
  const soak = durationFromMs(7 * 24 * hourMs);
  const rollout = { soak, healthTimeout: durationFromMs(24 * hourMs) };
  for (const left of [{}, { illness: { kind: 'fault', text: 'powerLost: it is off' } as const }]) {
    const pool = settled(3, { rollout }).push('B');
    const first = pool.out;
    pool.end(first, 'succeeded', left);
    expect(pool.slots[0]?.state).toBe(RolloutSlotState.PROVING);
    pool.push('C');
    expect(pool.slots.map((slot) => slot.image)).toEqual([image('C')]);
    expect(pool.surveyed().failedCount).toBe(0);
    expect(pool.ledger.size).toBe('illness' in left ? 0 : 1);
    // A host that is ill goes first.
    if ('illness' in left) expect(pool.out).toBe(first);
  }
});

test('a host that comes up on B when C is wanted already is in the history', () => {
  const rollout = { maxUnavailable: count(3), failureThreshold: count(3) };
  for (const isLate of [false, true]) {
    const pool = settled(4, { rollout }).push('B');
    const name = pool.out;
    pool.end(name, 'succeeded', { illness: { kind: 'fault', text: 'powerLost: it is off' } });
    pool.nowMs += hourMs;
    pool.reconcile();
    policyOf(pool).paused = true;
    if (!isLate) pool.set(numberOf(name), { illness: undefined });
    pool.push('C');
    if (isLate) pool.set(numberOf(name), { illness: undefined });
    pool.reconcile();
    const told = [...pool.ledger.values()].filter((each) => each.digest === digest('B'));
    expect(told.map(({ host }) => host)).toContain(`hosts/${name}`);
    policyOf(pool).paused = false;
    pool.reconcile().finish();
    expect([pool.countOn('C'), pool.record.failures]).toEqual([4, []]);
  }
});

test('a host that fails before it has begun is tried again and again, ever more seldom', () => {
  const pool = settled(1).push('B');
  const pauses: number[] = [];
  for (let tries = 0; tries < 11; tries++) {
    pool.end(pool.out, 'failedBefore');
    expect(pool.out).toBe('');
    if (tries >= 2) expect(pool.condition('Degraded')).toBe('HostFailed');
    pauses.push(((pool.nextPassMs ?? 0) - pool.nowMs) / 60_000);
    pool.nowMs = pool.nextPassMs ?? 0;
    pool.reconcile();
  }
  expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1_280, 1_440, 1_440]);
});

test.each([
  ['the disk that its host says', (pool: Rollout) => pool.set(1, { spec: withDisk('S1') })],
  ['how the pool deploys', (pool: Rollout) => deployed(pool)],
  ['nothing, and asks for a retry', (pool: Rollout) => pool.set(1, { retries: 1n })],
])('a failed host is tried at once when a person changes %s', (_, change) => {
  for (const how of ['failedBefore', 'failedWriting'] as const) {
    const pool = settled(1).push('B');
    pool.end(pool.out, how);
    pool.reconcile();
    expect(pool.out).toBe('');
    change(pool);
    expect(pool.reconcile().out).toBe('h1');
    pool.finish();
    expect(pool.condition('UpToDate')).toBe('AllUpdated');
  }
});

test('another registry is asked at once; no host that lost its image is written for that', () => {
  const tries = (how: 'failedBefore' | 'failedWriting') => {
    const pool = settled(1).push('B');
    pool.end(pool.out, how);
    pool.registries = [create(ImageRegistrySchema, { registry: 'registry.example' })];
    return pool.reconcile().out;
  };
  expect([tries('failedBefore'), tries('failedWriting')]).toEqual(['h1', '']);
});

test('a clock that is put back in the soak makes it no longer', () => {
  const pool = settled(2, { rollout: { soak: durationFromMs(hourMs) } }).push('B');
  const first = pool.out;
  pool.end(first);
  pool.nowMs -= 24 * hourMs;
  pool.reconcile();
  pool.nowMs += hourMs;
  expect(pool.reconcile().out).not.toBe(first);
});

test('provisioning that fails everywhere ends at the threshold', () => {
  const pool = new Rollout(
    30,
    { rollout: { maxUnavailable: count(5), rollback: true } },
    available,
  );
  pool.push('A');
  let runs = 0;
  for (; pool.out !== ''; runs++) failFirst(pool);
  expect(runs).toBeLessThanOrEqual(2 + 5);
});

function withDisk(serial: string) {
  return create(HostSpecSchema, { rootDisk: { serial } });
}

function deployed(pool: Rollout): void {
  pool.spec.deploy = create(DeploySpecSchema, { grow: false });
}

function missing(): never {
  throw new Error('there is none');
}

test('a retry brings a host back on the digest on which it failed, once for each', () => {
  const pool = settled(1).push('B');
  for (const retries of [1n, 2n]) {
    pool.end(pool.out, 'failedWriting');
    expect(pool.reconcile().out).toBe('');
    expect(pool.reconcile().out).toBe('');
    pool.set(1, { retries });
    expect(pool.reconcile().out).toBe('h1');
  }
  pool.finish();
  expect(pool.condition('UpToDate')).toBe('AllUpdated');
});

test('a host that failed and is pinned afterwards counts for the threshold no more', () => {
  const rollout = { maxUnavailable: count(3), failureThreshold: count(2) };
  const pool = settled(10, { rollout }).push('B');
  pool.end(firstOut(pool));
  const pinned = failFirst(pool);
  expect(pool.surveyed().failedCount).toBe(1);
  // To the image on which it failed: its failure stays.
  pool.spec.pins = { [`hosts/${pinned}`]: image('B') };
  pool.reconcile();
  expect(pool.record.failures.map(({ host, counted }) => [host, counted])).toEqual([
    [`hosts/${pinned}`, true],
  ]);
  expect(pool.surveyed().failedCount).toBe(0);
  failFirst(pool);
  expect([pool.surveyed().failedCount, pool.condition('UpToDate')]).toEqual([
    1,
    'RolloutInProgress',
  ]);
});

test.each([
  [2, 'not', false],
  [1, 'then', true],
] as const)('an image on which %i of 4 failed is %s a way back', (failures, _, isSettled) => {
  const rollout = { maxUnavailable: count(4), failureThreshold: count(4) };
  const pool = settled(4, { rollout }).push('B');
  for (let done = 0; done < 4; done += 1) {
    pool.end(firstOut(pool), done < 4 - failures ? 'succeeded' : 'failedWriting');
  }
  expect(pool.countOn('B')).toBe(4 - failures);
  expect(pool.record.targetSettled).toBe(isSettled);
  pool.push('C');
  expect(pool.record.previousTarget?.digest).toBe(digest(isSettled ? 'B' : 'A'));
});
