/** A pool's conditions for problems that neither halt it nor are over. */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { PoolAmountSchema, poolCondition } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Rollout } from './rollout.fixture.ts';

const minuteMs = 60_000;
const one = create(PoolAmountSchema, { amount: { case: 'count', value: 1 } });

test('a failure before a host is touched does not count, and is told from the first time', () => {
  const pool = new Rollout(2).push('A').push('B');
  const host = pool.out;
  pool.end(host, 'failedBefore');
  expect(pool.condition('Degraded')).toBe('Healthy');
  const told = `no hosts failed; hosts/${host}: tried again after a pause: its run failed`;
  expect(pool.messageOf('Degraded')).toBe(told);
  pool.nowMs += 5 * minuteMs;
  pool.reconcile().finish();
  expect(pool.messageOf('Degraded')).toBe('no hosts failed');
});

test('a pool that is to go back, and has nothing to go back to, says so', () => {
  const rollout = { rollback: true, failureThreshold: one };
  const first = new Rollout(2, { rollout }, { image: '', digest: '' }).push('A');
  first.end(first.out, 'failedWriting');
  expect(first.condition('Degraded')).toBe('RolloutHalted');
  expect(first.messageOf('Degraded')).toContain('it cannot go back: it was led to no other image');
  const second = new Rollout(2, { rollout }).push('A').push('B');
  second.end(second.out, 'failedWriting');
  expect([second.condition('Degraded'), second.messageOf('Degraded')]).toEqual([
    'RolledBack',
    expect.not.stringContaining('cannot go back'),
  ]);
});

test('a pause that outlasts the deadline of who was approved is what it waited for', () => {
  const pool = new Rollout(2, { rollout: { gate: { approval: true } } }).push('A').push('B');
  const [slot] = pool.slots;
  if (slot === undefined || pool.spec.rollout === undefined) throw new Error('one waits');
  slot.approvedBy = 'user:ann';
  pool.spec.rollout.paused = true;
  pool.reconcile();
  expect(pool.slots[0]?.message).toBe('let through, and waits: it is paused');
  pool.nowMs += 24 * 60 * minuteMs;
  pool.reconcile();
  const late = pool.record.failures.map(({ message }) => message);
  expect(late).toEqual(['let through, and could not go in time: it is paused']);
});

test('a condition says since when it is so for this reason', () => {
  const pool = new Rollout(3, { rollout: { failureThreshold: one } }).push('A').push('B');
  const since = () => {
    const found = poolCondition(pool.record.pool?.status, 'UpToDate');
    return [found?.reason, found?.since && timestampMs(found.since)];
  };
  const begunMs = pool.nowMs;
  const [rolling] = since();
  pool.nowMs += minuteMs;
  pool.reconcile();
  expect(since()).toEqual([rolling, begunMs]);
  pool.end(pool.out, 'failedWriting');
  expect(since()).toEqual(['Halted', pool.nowMs]);
  pool.nowMs += minuteMs;
  pool.reconcile();
  expect(since()).toEqual(['Halted', pool.nowMs - minuteMs]);
});
