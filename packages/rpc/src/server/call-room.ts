/**
 * The calls under way, and the admission of another one.
 *
 * Invariants:
 * 1. Calls of a service that needs no token have room and slots of their own. They take none from
 *    authenticated callers, nor from another such service, and lose none to them.
 * 2. No caller has more calls under way than allowed, over any number of connections, so that a few
 *    callers never have all of them. A caller is the one that its guard names, for each of its
 *    credentials and spellings; a certificate's key where there is no guard; until either is known,
 *    and where neither is required, its network.
 * 3. A refusal says when to retry.
 */

import { type CallContext, unavailable } from '@rackwright/messages';
import { Buckets, type Clock } from '@rackwright/platform';
import { networkOfPeer } from '../wire/caller-address.ts';
import type { RpcLimits } from '../wire/limits.ts';
import type { CallScope } from './call-scope.ts';
import { FairSlots } from './fair-slots.ts';

/** Networks whose rates are remembered at once. */
const networksMax = 4_096;

/** A call that counts against the limits until it leaves. */
export interface CountedCall {
  /** Idempotent. */
  readonly leave: () => void;
  /** From now on it counts as one of this caller's. Throws when that one has too many. */
  readonly attributeTo: (caller: string) => void;
}

/** Shared by the calls of one open service. */
interface OpenService {
  readonly calls: Set<CallScope>;
  readonly rates: Buckets;
  readonly slots: FairSlots;
}

export class CallRoom {
  readonly #limits: RpcLimits;
  readonly #clock: Clock;
  readonly #known = new Set<CallScope>();
  readonly #open = new Map<string, OpenService>();
  /** Open calls by caller; a caller without any has no entry. */
  readonly #callers = new Map<string, number>();
  #refused = 0;

  constructor(limits: RpcLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get size(): number {
    let size = this.#known.size;
    for (const { calls } of this.#open.values()) size += calls.size;
    return size;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Lets the call in; throws when there is no room. `openTo`: the open service that it is of. */
  enter(scope: CallScope, openTo: string | undefined, isGuarded: boolean): CountedCall {
    const { callsMax, openCallsMax, callsPerCallerMax, openCallsPerAddressMax } = this.#limits;
    const service = openTo === undefined ? undefined : this.#serviceOf(openTo);
    const calls = service?.calls ?? this.#known;
    if (calls.size >= (service === undefined ? callsMax : openCallsMax)) {
      throw this.#refusal(
        `${calls.size} calls are under way, as many as may be; come again later.`,
      );
    }
    let caller = firstCallerOf(scope.context, openTo, isGuarded);
    const most = service === undefined ? callsPerCallerMax : openCallsPerAddressMax;
    this.#count(caller, most, service === undefined ? 'of this caller' : 'of this address');
    calls.add(scope);
    return {
      leave: () => {
        if (calls.delete(scope)) this.#uncount(caller);
      },
      attributeTo: (known) => {
        if (!calls.has(scope)) return;
        this.#count(known, callsPerCallerMax, 'of this caller');
        this.#uncount(caller);
        caller = known;
      },
    };
  }

  /** Waits for a slot for a call of an open service; throws when none is free in time. */
  async waitForSlot({ context }: CallScope, openTo: string): Promise<void> {
    const { openCallsPerSecond, allOpenCallsPerSecond } = this.#limits;
    const { rates, slots } = this.#serviceOf(openTo);
    const network = networkOfPeer(context.peerAddress);
    const nowMs = this.#clock.nowMs();
    const waitMs = rates.of(network, nowMs).tryTake(1, nowMs);
    if (waitMs > 0) {
      const text = `More than ${openCallsPerSecond} calls a second came from this address.`;
      throw this.#refusal(text, waitMs);
    }
    const end = await slots.take(network, context.signal);
    if (end === 'slot') return;
    const text = `More than ${allOpenCallsPerSecond} calls a second came that show no token.`;
    throw this.#refusal(text, end.lateMs);
  }

  abortAll(): void {
    for (const scope of this.#known) scope.abort();
    for (const { calls } of this.#open.values()) for (const scope of calls) scope.abort();
  }

  #serviceOf(name: string): OpenService {
    const kept = this.#open.get(name);
    if (kept !== undefined) return kept;
    const { openCallsPerSecond: perSecond, openCallsBurst: most } = this.#limits;
    const { allOpenCallsPerSecond, allOpenCallsBurst, openCallWaitMs: waitMs } = this.#limits;
    const rate = { perSecond: allOpenCallsPerSecond, most: allOpenCallsBurst };
    const service = {
      calls: new Set<CallScope>(),
      rates: new Buckets({ perSecond, most }, networksMax),
      slots: new FairSlots({ rate, waitMs }, this.#clock),
    };
    this.#open.set(name, service);
    return service;
  }

  #count(caller: string, most: number, whose: string): void {
    const own = this.#callers.get(caller) ?? 0;
    if (own >= most) {
      throw this.#refusal(`${own} calls ${whose} are under way, as many as may be.`);
    }
    this.#callers.set(caller, own + 1);
  }

  #uncount(caller: string): void {
    const left = (this.#callers.get(caller) ?? 1) - 1;
    if (left === 0) this.#callers.delete(caller);
    else this.#callers.set(caller, left);
  }

  #refusal(text: string, waitMs = 0): Error {
    this.#refused += 1;
    return unavailable('TOO_MANY_CALLS', text, Math.max(waitMs, this.#limits.retryAfterMs));
  }
}

/** The caller before the guard has named one. */
function firstCallerOf(
  context: CallContext,
  openTo: string | undefined,
  isGuarded: boolean,
): string {
  const network = networkOfPeer(context.peerAddress);
  if (openTo !== undefined) return `open ${openTo} ${network}`;
  const key = isGuarded ? undefined : context.peerCertificate()?.publicKeySha256;
  return key === undefined ? `address ${network}` : `key ${key}`;
}

/** The room's key of a caller that a guard has named. */
export function callerNamed(name: string): string {
  return `known ${name}`;
}
