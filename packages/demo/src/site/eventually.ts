/** Waits with a timeout for a result that comes by itself, and says what was missing at its end. */
import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 50;

/**
 * The first result of `attempt` that is not undefined; throws when there is none in time. An
 * attempt that throws counts as failed: a service that cannot be reached now may be reached later.
 */
export async function eventually<T>(
  condition: string,
  timeoutMs: number,
  attempt: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const endMs = Date.now() + timeoutMs;
  let cause: unknown;
  while (Date.now() < endMs) {
    try {
      const result = await attempt();
      if (result !== undefined) return result;
    } catch (error) {
      cause = error;
    }
    await sleep(pollMs);
  }
  throw new Error(`waited ${timeoutMs / 1_000} s in vain for ${condition}`, { cause });
}
