/** A stopped rollout says so in its conditions, and names what it waits for. */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { HostState, RolloutSlotState } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainPool } from '../show/explain.ts';
import { Rollout } from './rollout.fixture.ts';

const dayMs = 24 * 3_600_000;
const canary = [{ name: 'canary', hosts: { names: ['hosts/h1', 'hosts/h2'] } }];

function conditionsOf(pool: Rollout): string[] {
  const types = ['UpToDate', 'Degraded'] as const;
  return types.map((type) => `${pool.condition(type)}: ${pool.messageOf(type)}`);
}

test('a wave that waits for a host which somebody holds is shown with that host', () => {
  const pool = new Rollout(4, { rollout: { waves: canary } }).push('A');
  pool.set(1, { keptBy: { kind: 'hold', text: 'its work is held by ann: disks' } });
  pool.push('B').finish();
  pool.nowMs += 30 * dayMs;
  expect([pool.reconcile().out, pool.countOn('B')]).toEqual(['', 1]);
  const [upToDate, degraded] = conditionsOf(pool);
  expect(upToDate).toMatch(
    /^Waiting: 1 of 4 hosts .*; hosts\/h[34]: its wave waits for hosts\/h1 of wave canary$/,
  );
  expect(degraded).toBe('HostKept: hosts/h1: its work is held by ann: disks');
});

test('a host that is out without a slot is named, where no other may be', () => {
  const silent = {
    illness: { kind: 'fault', text: 'bmcUnreachable: m' },
    service: 'unseen',
    keptBy: { kind: 'bmcFault', text: 'its BMC' },
  } as const;
  const pool = new Rollout(3).push('A');
  pool.set(2, silent);
  const [upToDate, degraded] = conditionsOf(pool.push('B'));
  expect(upToDate).toMatch(/; hosts\/h[13]: waits for a slot: 1 of 1 out \(hosts\/h2\)$/);
  expect(degraded).toBe('HostKept: hosts/h2: its BMC');

  const gated = new Rollout(3, { rollout: { gate: { approval: true } } }).push('A').push('B');
  const [slot] = gated.slots;
  const other = slot?.host === 'hosts/h2' ? 3 : 2;
  gated.set(other, silent);
  if (slot !== undefined) slot.approvedBy = 'user:ann';
  gated.reconcile();
  expect(gated.slots).toMatchObject([{ state: RolloutSlotState.GATE }]);
  const [told] = conditionsOf(gated);
  expect(told).toContain(`Waiting: 0 of 3 hosts`);
  expect(told).toContain(`${slot?.host}: waits for hosts/h${other}, which is out`);
});

test('a host that may serve or not, and that nothing keeps, does not wait for itself', () => {
  const windows = [{ cron: '0 2 * * *', duration: durationFromMs(3_600_000), timeZone: '' }];
  const pool = new Rollout(1, { rollout: { gate: { approval: true }, windows } }).push('A');
  pool.set(1, { service: 'unseen', keptBy: undefined });
  pool.push('B');
  expect([pool.out, pool.condition('UpToDate')]).toEqual(['', 'WaitingForWindow']);
  pool.nowMs += 14 * 3_600_000;
  pool.reconcile();
  const [slot] = pool.slots;
  expect(slot).toMatchObject({ host: 'hosts/h1', state: RolloutSlotState.GATE });
  if (slot !== undefined) slot.approvedBy = 'user:ann';
  expect(pool.reconcile().slots).toMatchObject([{ state: RolloutSlotState.RUNNING }]);
});

test('the last host runs the image, and is ill', () => {
  const pool = new Rollout(2).push('A');
  pool.set(1, { illness: { kind: 'off', text: 'it is off' } });
  const ill = 'hosts/h1: it runs the image, but: it is off';
  expect(conditionsOf(pool.reconcile())).toEqual([
    `Waiting: 1 of 2 hosts is on their image; ${ill}`,
    `HostKept: ${ill}`,
  ]);
});

test('a shut window is reported, but not where something else holds all hosts', () => {
  const windows = [{ cron: '0 2 * * *', duration: durationFromMs(3_600_000), timeZone: '' }];
  const pool = new Rollout(3, { rollout: { windows, waves: canary } }).push('A').push('B');
  expect(pool.condition('UpToDate')).toBe('WaitingForWindow');
  const frozen = 'racks/r1 is frozen by user:ann: a drill';
  pool.set(1, { keptBy: { kind: 'hold', text: frozen } });
  pool.set(2, { keptBy: { kind: 'hold', text: frozen } });
  expect(pool.reconcile().condition('UpToDate')).toBe('Waiting');
  expect(pool.messageOf('Degraded')).toContain(frozen);
});

test('a pool is not degraded during a pause before a retry, or during a clean', () => {
  const pool = new Rollout(2).push('A').push('B');
  const first = pool.out;
  pool.end(first, 'failedBefore');
  expect(pool.condition('Degraded')).toBe('Healthy');
  pool.end(pool.out);
  const other = first === 'h1' ? 2 : 1;
  const dirty = { state: HostState.MANAGEABLE, image: '', digest: '' };
  pool.set(other, dirty);
  pool.reconcileOnce();
  expect(pool.condition('Degraded')).toBe('Healthy');
  pool.set(other, {
    ...dirty,
    goalStopped: { kind: 'givenUp', text: '3 attempts in a row failed' },
  });
  pool.reconcileOnce();
  expect(pool.condition('Degraded')).toBe('HostKept');
});

test('a large rollout tells first what failed, is kept or belongs to others', () => {
  const maxUnavailable = { amount: { case: 'count' as const, value: 100 } };
  const failureThreshold = { amount: { case: 'count' as const, value: 50 } };
  const pool = new Rollout(110, { rollout: { maxUnavailable, failureThreshold } }).push('A');
  const why = 'its work is held by ann: disks';
  for (let n = 1; n <= 7; n++) pool.set(n, { keptBy: { kind: 'hold', text: why } });
  pool.push('B').end(pool.out);
  const [first = '', second = ''] = pool.out.split(' ');
  pool.end(first, 'failedWriting');
  pool.end(second);
  const contested = new Map([['hosts/x', 'claimed by user:ann']]);
  const told = explainPool(pool.record, pool.hosts, contested, pool.nowMs);
  const texts = told.causes.map(({ text }) => text);
  expect(texts[0]).toMatch(new RegExp(`^hosts/${first}: `));
  expect(texts.filter((text) => text.endsWith(why))).toHaveLength(5);
  expect(texts).toContain('and 2 more that something keeps');
  expect(texts).toContain('hosts/x is claimed by user:ann');
  const slots = texts.findIndex((text) => text.startsWith(`of ${pool.slots.length} slots `));
  expect(texts[slots]).toMatch(/^of \d+ slots \d+ at work; the oldest:$/);
  expect(texts[slots + 1]).toContain(' is out for ');
  expect(told.causes[slots + 1]?.since).toBeDefined();
  expect(slots).toBeGreaterThan(texts.indexOf('hosts/x is claimed by user:ann'));
});
