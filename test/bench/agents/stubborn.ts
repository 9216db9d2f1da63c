/** Calls that are made again, as an agent makes them, while nobody answers or there is no room. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiFailure } from '@rackwright/messages';

const answerMs = 30_000;
const triesMax = 10;
const pauseMs = 1_000;

/** `call` is given the time, of the wall clock in milliseconds, at which it gives up. */
export async function stubbornly<T>(call: (deadlineMs: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call(Date.now() + answerMs);
    } catch (error) {
      if (!(error instanceof ApiFailure) || tries === triesMax) throw error;
      const { error: why } = error;
      if (why.kind !== 'unavailable' && why.kind !== 'deadlineExceeded') throw error;
      const askedMs = 'retryAfterMs' in why ? (why.retryAfterMs ?? 0) : 0;
      await sleep(Math.max(pauseMs, askedMs));
    }
  }
}
