/**
 * How often an address may call what needs no token: a bucket per address that fills with time.
 *
 * Invariant: no more addresses are remembered than have called lately, and never more than
 * `addressesMax`; beyond, all newcomers share one bucket.
 */
import type { RpcLimits } from './limits.ts';

export type OpenCallLimits = Pick<RpcLimits, 'openCallsPerSecond' | 'openCallsBurst'>;

/** Addresses that are remembered at once. */
export const addressesMax = 4_096;

interface Bucket {
  calls: number;
  filledMs: number;
}

export class OpenCalls {
  readonly #limits: OpenCallLimits;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limits: OpenCallLimits) {
    this.#limits = limits;
  }

  get addresses(): number {
    return this.#buckets.size;
  }

  /** 0: the call may begin. Else: in so many milliseconds one may. */
  waitMs(address: string, nowMs: number): number {
    const { openCallsPerSecond, openCallsBurst } = this.#limits;
    const bucket = this.#bucketOf(address, nowMs);
    const filled = ((nowMs - bucket.filledMs) * openCallsPerSecond) / 1_000;
    bucket.calls = Math.min(openCallsBurst, bucket.calls + Math.max(0, filled));
    bucket.filledMs = nowMs;
    if (bucket.calls < 1) return Math.ceil(((1 - bucket.calls) * 1_000) / openCallsPerSecond);
    bucket.calls -= 1;
    return 0;
  }

  #bucketOf(address: string, nowMs: number): Bucket {
    const known = this.#buckets.get(address);
    if (known !== undefined) return known;
    if (this.#buckets.size >= addressesMax) this.#forget(nowMs);
    const name = this.#buckets.size >= addressesMax ? '' : address;
    const bucket = this.#buckets.get(name) ?? {
      calls: this.#limits.openCallsBurst,
      filledMs: nowMs,
    };
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** Buckets that are full again say nothing. */
  #forget(nowMs: number): void {
    const { openCallsPerSecond, openCallsBurst } = this.#limits;
    for (const [address, { calls, filledMs }] of this.#buckets) {
      const filled = calls + ((nowMs - filledMs) * openCallsPerSecond) / 1_000;
      if (filled >= openCallsBurst) this.#buckets.delete(address);
    }
  }
}
