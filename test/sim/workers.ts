/** Runs batches of seeds in processes beside each other, one batch at a time in each. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { WorldOptions } from './world.ts';

export interface Batch extends Omit<WorldOptions, 'seed' | 'traceLines'> {
  readonly first: number;
  readonly seeds: number;
}

/** The first promise that a seed broke. */
export interface Failure {
  readonly seed: number;
  readonly rule: string;
  readonly text: string;
}

/** What a batch came to. */
export interface BatchEnd {
  readonly seeds: number;
  readonly events: number;
  readonly crashes: number;
  readonly simulatedMs: number;
  readonly figures: readonly (readonly [string, number])[];
  readonly failures: readonly Failure[];
}

/** A seed takes about a second, on a busy machine ten. */
const seedLimitMs = 120_000;

/**
 * Hands out batches until there are no more; rejects when a worker breaks, or takes longer than
 * `limitMs` for each seed of a batch: nothing inside a world can tell that it goes on for ever.
 */
export async function inParallel(
  batches: Iterator<Batch>,
  workers: number,
  take: (end: BatchEnd) => void,
  limitMs = seedLimitMs,
): Promise<void> {
  await Promise.all(Array.from({ length: workers }, () => work(batches, take, limitMs)));
}

function work(
  batches: Iterator<Batch>,
  take: (end: BatchEnd) => void,
  limitMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(new URL('worker.main.ts', import.meta.url)));
    let done = false;
    let limit: NodeJS.Timeout | undefined;
    const next = () => {
      clearTimeout(limit);
      const batch = batches.next();
      done = batch.done === true;
      if (batch.done === true) return worker.disconnect();
      const { first, seeds } = batch.value;
      limit = setTimeout(() => {
        const which =
          seeds === 1 ? `seed ${first}` : `one of the seeds ${first} to ${first + seeds - 1}`;
        reject(new Error(`${which} has not ended after ${(limitMs * seeds) / 1_000} s`));
        worker.kill('SIGKILL');
      }, limitMs * seeds);
      worker.send(batch.value);
    };
    worker.on('message', (end) => {
      take(end as BatchEnd);
      next();
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      clearTimeout(limit);
      if (done) resolve();
      else reject(new Error(`a worker ended: ${code}`));
    });
    next();
  });
}
