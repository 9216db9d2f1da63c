/**
 * Values that two replicas must derive alike: seeds and jitter come from hashes, never from chance.
 */
import { createHash } from 'node:crypto';
import { hashFraction } from '@rackwright/results';

/** 32 bytes from which an operation's challenge places follow. */
export function challengeSeed(incarnation: string, operationId: string): Uint8Array {
  return createHash('sha256').update(`challenge\0${incarnation}\0${operationId}`).digest();
}

/**
 * The n-th pause (n from 1) of an exponential back-off: doubles from `firstMs` to `maxMs`, less up
 * to a quarter of jitter derived from `key`.
 */
export function backoffMs(n: number, firstMs: number, maxMs: number, key: string): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(n - 1, 30));
  return Math.round(full * (1 - hashFraction(`backoff\0${key}\0${n}`) / 4));
}
