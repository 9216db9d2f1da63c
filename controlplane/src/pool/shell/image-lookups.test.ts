import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { asPoolId, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeClock } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import type { ResolveResult } from '../../images/index.ts';
import { digest, image, Rollout, reference } from '../decide/rollout.fixture.ts';
import { ImageLookups } from './image-lookups.ts';

const poolId = asPoolId('p');

/** The pool with this target. */
function recordAt(letter: string): wire.PoolRecord {
  const target = {
    ...{ reference, digest: digest(letter), image: image(letter), version: letter },
    platformDigests: { amd64: digest(letter) },
  };
  const pool = { name: 'pools/p', spec: { image: reference }, status: { target } };
  return create(wire.PoolRecordSchema, { pool });
}

test('an answer that is too late for its target is requested again, and never used', async () => {
  const asked: string[] = [];
  let found = Promise.withResolvers<void>();
  const resolve = async (_: string, known: string): Promise<ResolveResult> => {
    asked.push(known);
    return { kind: 'unchanged' };
  };
  const imageLookups = new ImageLookups({ clock: nodeClock(), resolve }, () => found.resolve());
  expect(imageLookups.take(poolId, recordAt('A'))).toBeUndefined();
  await found.promise;
  const answer = imageLookups.take(poolId, recordAt('A'));
  expect(answer).toMatchObject({ digest: digest('A'), known: digest('A') });
  // It could not be written, because another replica has written B.
  imageLookups.putBack(poolId, answer);
  found = Promise.withResolvers();
  expect(imageLookups.take(poolId, recordAt('B'))).toBeUndefined();
  await found.promise;
  expect(asked).toEqual([digest('A'), digest('B')]);
  const anew = imageLookups.take(poolId, recordAt('B'));
  expect(anew).toMatchObject({ digest: digest('B'), version: 'B' });
  // An answer equal to the present target changes nothing.
  imageLookups.putBack(poolId, anew);
  expect(imageLookups.take(poolId, recordAt('B'))).toBe(anew);
  imageLookups.stop();
});

test('hosts on B stay there, whatever was answered while the target was A', () => {
  const pool = new Rollout(3).push('A').push('B').finish();
  const old = { kind: 'digest', reference, digest: digest('A'), version: 'v-A' } as const;
  pool.reconcile({ ...old, known: digest('A') });
  expect([pool.out, pool.countOn('B')]).toEqual(['', 3]);
  // A tag that was set back gives a present answer.
  pool.reconcile({ ...old, known: digest('B') });
  expect(pool.slots[0]?.image).toBe(image('A'));
});

test('an interval that is made shorter counts at once, from the last answer', async () => {
  let nowMs = 0;
  const waits = new Set<number>();
  const clock: Clock = {
    nowMs: () => nowMs,
    suspendAwareMs: () => nowMs,
    after: (delayMs) => {
      waits.add(delayMs);
      return () => waits.delete(delayMs);
    },
  };
  const found = Promise.withResolvers<void>();
  const resolve = async (): Promise<ResolveResult> => ({ kind: 'unchanged' });
  const imageLookups = new ImageLookups({ clock, resolve }, () => found.resolve());
  const record = recordAt('A');
  const poll = (ms: number) => {
    if (record.pool?.spec !== undefined) record.pool.spec.pollInterval = durationFromMs(ms);
    return imageLookups.take(poolId, record);
  };
  poll(86_400_000);
  await found.promise;
  expect(poll(86_400_000)).toMatchObject({ digest: digest('A') });
  expect([...waits]).toEqual([86_400_000]);
  nowMs += 20_000;
  poll(60_000);
  expect([...waits]).toEqual([40_000]);
  nowMs += 60_000;
  poll(70_000);
  expect([...waits]).toEqual([0]);
  imageLookups.stop();
});

test.each<[string, (imageLookups: ImageLookups) => void]>([
  ['the pool is gone', (imageLookups) => imageLookups.forget(poolId)],
  ['the control plane stops', (imageLookups) => imageLookups.stop()],
])('an answer that comes when %s wakes nobody, and is not asked for again', async (_, end) => {
  const answer = Promise.withResolvers<ResolveResult>();
  let found = 0;
  const waits: number[] = [];
  const clock: Clock = {
    ...nodeClock(),
    after: (delayMs) => {
      waits.push(delayMs);
      return () => {};
    },
  };
  const imageLookups = new ImageLookups({ clock, resolve: () => answer.promise }, () => {
    found += 1;
  });
  imageLookups.take(poolId, recordAt('A'));
  end(imageLookups);
  answer.resolve({ kind: 'unchanged' });
  await new Promise(setImmediate);
  expect([found, waits]).toEqual([0, []]);
});

test('an answer for the name before is not taken for the one that is wanted now', async () => {
  const answers = new Map<string, (answer: ResolveResult) => void>();
  const resolve = (asked: string): Promise<ResolveResult> =>
    new Promise((settle) => answers.set(asked, settle));
  const imageLookups = new ImageLookups({ clock: nodeClock(), resolve }, () => {});
  const record = recordAt('A');
  imageLookups.take(poolId, record);
  if (record.pool?.spec !== undefined) record.pool.spec.image = 'registry.example/os:next';
  imageLookups.take(poolId, record);
  answers.get(reference)?.({ kind: 'digest', digest: digest('B'), version: 'B' });
  await new Promise(setImmediate);
  expect(imageLookups.take(poolId, record)).toBeUndefined();
  answers.get('registry.example/os:next')?.({ kind: 'digest', digest: digest('C'), version: 'C' });
  await new Promise(setImmediate);
  expect(imageLookups.take(poolId, record)).toMatchObject({ digest: digest('C') });
  imageLookups.stop();
});
