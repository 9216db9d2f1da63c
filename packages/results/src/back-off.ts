/** Delays before retries. All in milliseconds, whole, ≥ 0. */
import { hashFraction } from './hash.ts';

export interface BackOff {
  /** Counts from 1: the first failure. */
  readonly attempt: number;
  /** Delay after the first failure, before jitter. */
  readonly firstMs: number;
  /** Delays grow no further than this. */
  readonly delayMsMax: number;
}

/**
 * The delay after failure number `attempt`: doubling, capped, less up to a quarter by the hash of
 * `key` and the attempt, so that it is the same wherever it is computed.
 */
export function backoffDelayMs(backOff: BackOff & { readonly key: string }): number {
  const fraction = hashFraction(`${backOff.key}#${backOff.attempt}`);
  return Math.round(exponentialMs(backOff) * (1 - fraction / 4));
}

/** The same with full jitter: anywhere from 0 to the whole delay, by a random `fraction` [0, 1). */
export function fullJitterDelayMs(backOff: BackOff & { readonly fraction: number }): number {
  return Math.round(exponentialMs(backOff) * backOff.fraction);
}

function exponentialMs({ attempt, firstMs, delayMsMax }: BackOff): number {
  // Beyond 2^52 every cap in use has been reached; this keeps the product finite.
  const doublings = Math.min(Math.max(attempt - 1, 0), 52);
  return Math.min(firstMs * 2 ** doublings, delayMsMax);
}
