import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { RolloutPolicySchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { digest, image, Rollout } from '../decide/rollout.fixture.ts';
import { rolloutPlan, shownPool } from './view.ts';

const count = (value: number) => ({ amount: { case: 'count' as const, value } });

const windows = [{ cron: '0 2 * * *', duration: durationFromMs(3_600_000), timeZone: '' }];
const silent = {
  illness: { kind: 'fault', text: 'bmcUnreachable: m' },
  service: 'unseen',
  keptBy: { kind: 'bmcFault', text: 'its BMC' },
} as const;

const viewed = ({ record, hosts, nowMs }: Rollout) => ({ record, hosts, nowMs, ledger: [] });

test('the view of a pool that went back shows the image that it leads its hosts to', () => {
  const rollout = { failureThreshold: count(1), rollback: true };
  const pool = new Rollout(3, { rollout }).push('A').push('B');
  pool.end(pool.out, 'failedWriting').finish();
  expect(shownPool(viewed(pool)).status).toMatchObject({
    ...{ rolledBackFrom: digest('B'), currentCount: 3 },
    target: { digest: digest('A'), image: image('A') },
  });
  expect(pool.record.pool?.status?.target?.digest).toBe(digest('B'));
  pool.push('C');
  expect(shownPool(viewed(pool)).status).toMatchObject({
    rolledBackFrom: '',
    target: { digest: digest('C') },
  });
});

test('a plan says that nobody would go, and why: its window is shut', () => {
  const pool = new Rollout(3, { rollout: { windows } }).push('A').push('B');
  const opens = 'waits for a window, which opens at 2026-11-23T02:00:00Z';
  const plan = rolloutPlan(viewed(pool));
  expect(plan.hosts.map(({ blockedBecause }) => blockedBecause)).toEqual(Array(3).fill(opens));
  expect(plan.heldBecause).toBe(`${plan.hosts[0]?.host}: ${opens}`);
  // A broken host waits for no window: it goes first, without an approval.
  pool.spec.rollout = create(RolloutPolicySchema, { windows, gate: { approval: true } });
  pool.set(2, { illness: { kind: 'off', text: 'it is off' } });
  const mixed = rolloutPlan(viewed(pool));
  expect(mixed.heldBecause).toBe('');
  expect(mixed.hosts).toMatchObject([
    { host: 'hosts/h2', blockedBecause: '', askedAtGate: false },
    { blockedBecause: expect.stringContaining('1 of 1 out (hosts/h2)'), askedAtGate: true },
    { blockedBecause: expect.stringContaining('1 of 1 out (hosts/h2)'), askedAtGate: true },
  ]);
});

test('a plan names who is out, whom a wave waits for, and what keeps the last one', () => {
  const busy = new Rollout(3).push('A');
  busy.set(2, silent);
  expect(rolloutPlan(viewed(busy.push('B'))).heldBecause).toContain('1 of 1 out (hosts/h2)');

  const waves = [{ name: 'canary', hosts: { names: ['hosts/h1', 'hosts/h2'] } }];
  const waved = new Rollout(3, { rollout: { waves } }).push('A').push('B');
  waved.end(waved.out);
  const canary = rolloutPlan(viewed(waved)).hosts.find(({ host }) => host === 'hosts/h3');
  expect(canary?.blockedBecause).toMatch(/^its wave waits for hosts\/h[12] of wave canary$/);

  const last = new Rollout(1).push('A');
  last.set(1, { keptBy: { kind: 'hold', text: 'its work is held by ann: disks' } });
  const { heldBecause } = rolloutPlan(viewed(last.push('B')));
  expect(heldBecause).toBe('hosts/h1: its work is held by ann: disks');
  expect(rolloutPlan(viewed(new Rollout(2).push('A'))).heldBecause).toBe('');
});
