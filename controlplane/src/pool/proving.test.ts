/** A host that is written, and has to be healthy for a while: the clock that runs against it. */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { Rollout } from './rollout.fixture.ts';

const minuteMs = 60_000;
const off = { illness: 'it is off', service: 'out' } as const;
const well = { illness: undefined, service: 'in' } as const;

/** Four hosts on A; the first one has been written with B, and is to be healthy for an hour. */
function soaking(rollback = false, left: Parameters<Rollout['set']>[1] = {}) {
  const pool = new Rollout(4, { rollout: { soak: durationFromMs(60 * minuteMs), rollback } });
  pool.push('A').push('B');
  const host = pool.out;
  pool.end(host, 'succeeded', left);
  expect(pool.out).toBe(host);
  const pass = (minutes: number, change: Parameters<Rollout['set']>[1] = {}) => {
    pool.nowMs += minutes * minuteMs;
    pool.set(Number(host.slice(1)), change);
    return pool.look();
  };
  return { pool, host, pass };
}

test('who is ill for a moment of a long soak has not failed, and soaks anew', () => {
  const { pool, host, pass } = soaking(true);
  expect(pass(40, off).out).toBe(host);
  expect(pool.nextLookMs).toBe(pool.nowMs + 15 * minuteMs);
  expect([pool.condition('Degraded'), pool.record.failures]).toEqual(['Healthy', []]);
  expect(pass(5, well).out).toBe(host);
  expect(pass(59).out).toBe(host);
  expect(pass(1).out).not.toBe(host);
  expect([pool.out === '', pool.condition('Degraded')]).toEqual([false, 'Healthy']);
});

test('who is healthy no more for as long as hosts have to become so has failed', () => {
  const { pool, host, pass } = soaking();
  pass(40, off);
  expect(pass(14).out).toBe(host);
  expect(pass(1).out).toBe('');
  expect(pool.condition('UpToDate')).toBe('Halted');
  expect(pool.messageOf('Degraded')).toContain('written, and too long ill since: it is off');
});

test('who comes and goes keeps its slot no longer than that, in all', () => {
  const { pool, host, pass } = soaking();
  for (let minutes = 0; minutes < 14; minutes++) {
    expect(pass(20, off).out).toBe(host);
    expect(pass(1, well).out).toBe(host);
  }
  pass(20, off);
  expect(pass(1).out).toBe('');
  expect(pool.condition('UpToDate')).toBe('Halted');
});

test('who was late to become healthy has as long again for what comes then', () => {
  const { pool, host, pass } = soaking(false, off);
  expect(pass(14).out).toBe(host);
  pass(0, well);
  pass(10, off);
  expect(pass(14).out).toBe(host);
  pass(1);
  expect(pool.messageOf('Degraded')).toContain('too long ill since');
});
