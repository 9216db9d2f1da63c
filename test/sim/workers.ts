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

/** Hands out batches until there are no more; rejects when a worker breaks. */
export async function inParallel(
  batches: Iterator<Batch>,
  workers: number,
  take: (end: BatchEnd) => void,
): Promise<void> {
  await Promise.all(Array.from({ length: workers }, () => work(batches, take)));
}

function work(batches: Iterator<Batch>, take: (end: BatchEnd) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(new URL('worker.main.ts', import.meta.url)));
    let done = false;
    const next = () => {
      const batch = batches.next();
      done = batch.done === true;
      if (batch.done === true) worker.disconnect();
      else worker.send(batch.value);
    };
    worker.on('message', (end) => {
      take(end as BatchEnd);
      next();
    });
    worker.on('error', reject);
    worker.on('exit', (code) => (done ? resolve() : reject(new Error(`a worker ended: ${code}`))));
    next();
  });
}
