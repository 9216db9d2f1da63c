/**
 * The calls under way, and who may begin another one.
 *
 * Invariants:
 * 1. Calls that need no token have room of their own: they take none from callers who have shown
 *    who they are, and lose none to them.
 * 2. No caller has more calls under way than allowed, whatever the number of its connections, so
 *    that a few of them never are all. A caller is a token, a certificate, or else an address.
 * 3. Who is refused hears when to come again.
 */
import { createHash } from 'node:crypto';
import { Bucket, Buckets } from '@rackwright/platform';
import { unavailable } from '../error/api-error.ts';
import type { CallScope } from './call-scope.ts';
import { hostOfPeer, networkOf } from './caller-address.ts';
import type { CallContext } from './handlers.ts';
import type { RpcLimits } from './limits.ts';

/** Networks whose rates are remembered at once. */
const networksMax = 4_096;

export class CallRoom {
  readonly #limits: RpcLimits;
  readonly #nowMs: () => number;
  readonly #rates: Buckets;
  readonly #allRate: Bucket;
  readonly #known = new Set<CallScope>();
  readonly #open = new Set<CallScope>();
  /** How many each caller has; who has none is not here. */
  readonly #callers = new Map<string, number>();
  #refused = 0;

  constructor(limits: RpcLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    const { openCallsPerSecond: perSecond, openCallsBurst: most } = limits;
    this.#rates = new Buckets({ perSecond, most }, networksMax);
    const { allOpenCallsPerSecond, allOpenCallsBurst } = limits;
    const all = { perSecond: allOpenCallsPerSecond, most: allOpenCallsBurst };
    this.#allRate = new Bucket(all, nowMs());
  }

  get size(): number {
    return this.#known.size + this.#open.size;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Lets the call in and returns what ends its stay; throws when there is no room. */
  enter(scope: CallScope, isOpen: boolean): () => void {
    const { callsMax, openCallsMax, callsPerCallerMax, openCallsPerAddressMax } = this.#limits;
    const [calls, most] = isOpen ? [this.#open, openCallsMax] : [this.#known, callsMax];
    if (calls.size >= most) {
      throw this.#refusal(
        `${calls.size} calls are under way, as many as may be; come again later.`,
      );
    }
    const caller = callerOf(scope.context, isOpen);
    const own = this.#callers.get(caller) ?? 0;
    if (own >= (isOpen ? openCallsPerAddressMax : callsPerCallerMax)) {
      const whose = isOpen ? 'of this address' : 'of this caller';
      throw this.#refusal(`${own} calls ${whose} are under way, as many as may be.`);
    }
    if (isOpen) this.#ration(scope.context);
    calls.add(scope);
    this.#callers.set(caller, own + 1);
    return () => {
      if (!calls.delete(scope)) return;
      const left = (this.#callers.get(caller) ?? 1) - 1;
      if (left === 0) this.#callers.delete(caller);
      else this.#callers.set(caller, left);
    };
  }

  abortAll(): void {
    for (const scope of [...this.#known, ...this.#open]) scope.abort();
  }

  #ration({ peerAddress }: CallContext): void {
    const nowMs = this.#nowMs();
    const waitMs = this.#rates.of(networkOf(hostOfPeer(peerAddress)), nowMs).tryTake(1, nowMs);
    const { openCallsPerSecond, allOpenCallsPerSecond } = this.#limits;
    if (waitMs > 0) {
      const words = `More than ${openCallsPerSecond} calls a second came from this address.`;
      throw this.#refusal(words, waitMs);
    }
    const allWaitMs = this.#allRate.tryTake(1, nowMs);
    if (allWaitMs === 0) return;
    const words = `More than ${allOpenCallsPerSecond} calls a second came that show no token.`;
    throw this.#refusal(words, allWaitMs);
  }

  #refusal(words: string, waitMs = 0): Error {
    this.#refused += 1;
    return unavailable('TOO_MANY_CALLS', words, Math.max(waitMs, this.#limits.retryAfterMs));
  }
}

/** Only its hash: nothing here keeps a token. */
function callerOf(context: CallContext, isOpen: boolean): string {
  if (isOpen) return `open ${networkOf(hostOfPeer(context.peerAddress))}`;
  const token = context.header('authorization');
  if (token !== undefined) return `token ${createHash('sha256').update(token).digest('base64')}`;
  const key = context.peerCertificate()?.publicKeySha256;
  return key === undefined ? `address ${networkOf(hostOfPeer(context.peerAddress))}` : `key ${key}`;
}
