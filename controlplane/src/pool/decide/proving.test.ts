/** A written host has to be healthy for a while: the deadline for that. */
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { historyOf } from '../ledger/history.ts';
import { digest, image, Rollout } from './rollout.fixture.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const off = { illness: { kind: 'off', text: 'it is off' }, service: 'out' } as const;
const well = { illness: undefined, service: 'in' } as const;

/** Four hosts on A; the first one has been written with B, and is to be healthy for an hour. */
function soaking(rollback = false, left: Parameters<Rollout['set']>[1] = {}) {
  const pool = new Rollout(4, { rollout: { soak: durationFromMs(hourMs), rollback } });
  pool.push('A').push('B');
  const host = pool.out;
  pool.end(host, 'succeeded', left);
  expect(pool.out).toBe(host);
  const pass = (minutes: number, change: Parameters<Rollout['set']>[1] = {}) => {
    pool.nowMs += minutes * minuteMs;
    pool.set(Number(host.slice(1)), change);
    return pool.reconcile();
  };
  return { pool, host, pass };
}

test('a host that is ill for a moment of a long soak has not failed, and soaks again', () => {
  const { pool, host, pass } = soaking(true);
  expect(pass(40, off).out).toBe(host);
  expect(pool.nextPassMs).toBe(pool.nowMs + 15 * minuteMs);
  expect([pool.condition('Degraded'), pool.record.failures]).toEqual(['Healthy', []]);
  expect(pass(5, well).out).toBe(host);
  expect(pass(59).out).toBe(host);
  expect(pass(1).out).not.toBe(host);
  expect([pool.out === '', pool.condition('Degraded')]).toEqual([false, 'Healthy']);
});

test('the pool is reconciled again when the soak is over, and the slot is free then', () => {
  const { pool, host, pass } = soaking();
  expect(pass(59).out).toBe(host);
  expect(pool.nextPassMs).toBe(pool.nowMs + minuteMs);
  expect(pass(1).out).not.toBe(host);
});

test('a host that is ill for as long as hosts have to become healthy has failed', () => {
  const { pool, host, pass } = soaking();
  pass(40, off);
  expect(pass(14).out).toBe(host);
  expect(pass(1).out).toBe('');
  expect(pool.condition('UpToDate')).toBe('Halted');
  expect(pool.messageOf('Degraded')).toContain('written, and too long ill since: it is off');
});

test('a host that comes and goes keeps its slot no longer than that, in all', () => {
  const { pool, host, pass } = soaking();
  for (let minutes = 0; minutes < 14; minutes++) {
    expect(pass(20, off).out).toBe(host);
    expect(pass(1, well).out).toBe(host);
  }
  pass(20, off);
  expect(pass(1).out).toBe('');
  expect(pool.condition('UpToDate')).toBe('Halted');
});

test('a host that was late to become healthy has as long again for what comes then', () => {
  const { pool, host, pass } = soaking(false, off);
  expect(pass(14).out).toBe(host);
  pass(0, well);
  pass(10, off);
  expect(pass(14).out).toBe(host);
  pass(1);
  expect(pool.messageOf('Degraded')).toContain('too long ill since');
});

/** One host, which was written with A and is not healthy; the times of its history since then. */
function unproved() {
  const pool = new Rollout(1, { rollout: { soak: durationFromMs(minuteMs) } });
  pool.set(1, { image: '', digest: '' });
  pool.push('A');
  const writtenMs = pool.nowMs;
  pool.end('h1', 'succeeded', off);
  const entries = () => historyOf([...pool.ledger.values()], pool.hosts, { limit: 9, target: '' });
  const pass = (minutes: number, change: Parameters<Rollout['set']>[1] = {}) => {
    pool.nowMs += minutes * minuteMs;
    pool.set(1, change);
    pool.reconcile();
    return entries().map(({ lastDeployed }) => lastDeployed);
  };
  const at = (minutes: number) => [timestampFromMs(writtenMs + minutes * minuteMs)];
  return { pool, pass, at };
}

test('garm-H1: deployed is a host when it is seen healthy, not when its run had ended', () => {
  const { pool, pass, at } = unproved();
  expect(pass(10)).toEqual([]);
  expect(pass(4, well)).toEqual(at(14));
  // A later change of the host does not make it newer.
  for (const change of [off, well, {}]) expect(pass(2, change)).toEqual(at(14));
  expect(pool.out).toBe('');
});

test('garm-H1: a host that returns when it has failed long since is deployed by then', () => {
  const { pool, pass, at } = unproved();
  expect(pass(20)).toEqual([]);
  expect(pool.surveyed().failedCount).toBe(1);
  expect(pass(340, well)).toEqual(at(360));
  expect(pass(1)).toEqual(at(360));
});

test('a host that returns when another image is wanted is deployed with the first by then', () => {
  const { pool, pass, at } = unproved();
  expect(pass(20)).toEqual([]);
  if (pool.spec.rollout !== undefined) pool.spec.rollout.paused = true;
  pool.push('B');
  // It no longer counts, and is kept only for the history.
  expect(pool.surveyed().failedCount).toBe(0);
  expect(pool.record.failures).toMatchObject([{ counted: false, attempts: 0 }]);
  expect(pass(10, well)).toEqual(at(30));
  expect(pool.record.failures).toEqual([]);
});

test('a host that was written again meanwhile reports nothing of the image before', () => {
  const { pool, pass } = unproved();
  pass(20);
  if (pool.spec.rollout !== undefined) pool.spec.rollout.paused = true;
  pool.push('B');
  expect(pass(10, { ...well, image: image('C'), digest: digest('C') })).toEqual([]);
  expect(pool.record.failures).toEqual([]);
});

test('garm-H1: a host that was healthy, and failed in its soak, is reported once', () => {
  const { pool, pass, at } = unproved();
  if (pool.spec.rollout !== undefined) pool.spec.rollout.soak = durationFromMs(hourMs);
  expect(pass(1, well)).toEqual(at(1));
  pass(1, off);
  expect(pass(20)).toEqual(at(1));
  expect(pool.surveyed().failedCount).toBe(1);
  expect(pass(20, well)).toEqual(at(1));
});

test('garm-H9: a clock that is put back takes nothing from the history', () => {
  const pool = new Rollout(2).push('A').push('B');
  pool.nowMs += hourMs;
  const lastMs = pool.nowMs;
  pool.end(pool.out);
  pool.nowMs -= 2 * hourMs;
  pool.reconcile().finish();
  const [entry] = historyOf([...pool.ledger.values()], pool.hosts, { limit: 9, target: '' });
  expect(entry).toMatchObject({ hostCount: 2, lastDeployed: timestampFromMs(lastMs) });
});
