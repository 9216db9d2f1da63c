/** Seeds in processes of their own, and a bound on them that is kept outside. */
import { expect, test } from 'vitest';
import { type Batch, type BatchEnd, inParallel } from './workers.ts';

const worlds = { hosts: 1, operators: false, discovery: false, batches: false, pools: false };

function* batchesOf(...firsts: readonly number[]): Generator<Batch> {
  for (const first of firsts) yield { first, seeds: 1, ...worlds };
}

test('each batch comes to an end that is told', async () => {
  const ends: BatchEnd[] = [];
  await inParallel(batchesOf(1, 2, 3), 2, (end) => ends.push(end));
  expect(ends.map(({ seeds, failures }) => [seeds, failures])).toEqual([
    [1, []],
    [1, []],
    [1, []],
  ]);
});

test('a seed that takes longer than it may is ended from outside, and named', async () => {
  const told: BatchEnd[] = [];
  const running = inParallel(batchesOf(7), 1, (end) => told.push(end), 1);
  await expect(running).rejects.toThrow('seed 7 has not ended after 0.001 s');
  expect(told).toEqual([]);
});
