/** How a pool handles registries' answers, and an image that does not suit all hosts. */
import { describe, expect, test } from 'vitest';
import { digest, image, Rollout, reference } from '../decide/rollout.fixture.ts';
import { knownDigest } from './target.ts';

const hourMs = 3_600_000;
const one = { amount: { case: 'count' as const, value: 1 } };

/** Three hosts on A, which is the target; nothing is in progress. */
function settled(): Rollout {
  return new Rollout(3).push('A');
}

test('garm-T2, garm-T6: while a tag is not resolved the target stays, the rollout goes on', () => {
  for (const type of ['registryUnreachable', 'imageNotFound'] as const) {
    const pool = settled();
    pool.push('B');
    pool.reconcile({ kind: 'failed', reference, type, message: 'no answer' });
    expect(pool.condition('Resolved')).toBe('ResolutionFailed');
    expect(pool.messageOf('Resolved')).toBe(`${type}: no answer`);
    pool.finish();
    expect(pool.countOn('B')).toBe(3);
    pool.push('B');
    expect(pool.condition('Resolved')).toBe('Resolved');
  }
});

test('garm-T4: a changed reference never meets the old digest; it waits to be resolved', () => {
  const pool = settled();
  pool.spec.image = 'registry.example/other:next';
  pool.reconcile();
  expect(pool.condition('UpToDate')).toBe('NoTarget');
  expect(pool.record.pool?.status?.target?.image).toBe(image('A'));
  // An answer for the old name comes too late.
  pool.reconcile({ kind: 'digest', reference, digest: digest('X'), version: '', known: '' });
  expect([pool.out, pool.countOn('A')]).toEqual(['', 3]);
  pool.push('B');
  expect(pool.slots[0]?.image).toBe(`registry.example/other@${digest('B')}`);
});

test('garm-T8: hosts that the image does not fit fail by themselves; the others go on', () => {
  const pool = new Rollout(4, { rollout: { failureThreshold: one } }).push('A');
  pool.push('B');
  const first = pool.out;
  pool.end(first, 'failedBefore').finish();
  expect(pool.countOn('B')).toBe(3);
  expect([pool.condition('UpToDate'), pool.condition('Degraded')]).toEqual(['Waiting', 'Healthy']);
  expect(pool.messageOf('UpToDate')).toContain('tried again after a pause');
  for (let again = 0; again < 2; again++) {
    pool.nowMs += hourMs;
    pool.reconcile().end(first, 'failedBefore');
  }
  // It is retried, but not at once.
  expect(pool.reconcile().out).toBe('');
  expect([pool.countOn('B'), pool.surveyed().failedCount]).toEqual([3, 0]);
  expect(pool.messageOf('Degraded')).toContain(`hosts/${first}`);
});

describe('a tag that moves to another index', () => {
  /** The registry resolves to this digest now, with these manifests. */
  function moves(pool: Rollout, letter: string, platforms: Readonly<Record<string, string>>) {
    const { image: named } = pool.spec;
    const known = knownDigest(pool.record, named);
    const answer = { reference: named, digest: digest(letter), version: '', known, platforms };
    return pool.reconcile({ kind: 'digest', ...answer });
  }

  test('an index of the same manifest for the platform moves no host', () => {
    const pool = moves(settled(), 'B', { amd64: digest('m') }).finish();
    expect(pool.countOn('B')).toBe(3);
    moves(pool, 'C', { amd64: digest('m') });
    expect([pool.out, pool.condition('UpToDate')]).toEqual(['', 'AllUpdated']);
    moves(pool, 'D', { amd64: digest('m'), arm64: digest('n') });
    expect(pool.out).toBe('');
    moves(pool, 'E', { amd64: digest('o') }).finish();
    expect(pool.countOn('E')).toBe(3);
  });

  test('an index of the same manifest under another tag moves no host either', () => {
    const pool = moves(settled(), 'B', { amd64: digest('m') }).finish();
    pool.spec.image = 'registry.example/os:next';
    moves(pool, 'C', { amd64: digest('m') });
    expect([pool.out, pool.condition('UpToDate')]).toEqual(['', 'AllUpdated']);
    expect(pool.record.pool?.status?.target).toMatchObject({ image: image('B') });
  });

  test('an index forgets nothing of a rollout that was halted on these manifests', () => {
    const pool = new Rollout(3, { rollout: { failureThreshold: one } }).push('A');
    moves(pool, 'B', { amd64: digest('m') }).end(pool.out, 'failedWriting');
    expect(pool.condition('Degraded')).toBe('RolloutHalted');
    moves(pool, 'C', { amd64: digest('m') });
    expect([pool.out, pool.condition('Degraded')]).toEqual(['', 'RolloutHalted']);
  });
});
