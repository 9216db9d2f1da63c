/**
 * Admits calls by their headers. Before any of a call's body is read, it has room, and its caller
 * has shown a valid token or certificate where one is required.
 *
 * Invariants:
 * 1. A call has its room from its headers until its stream is closed or it is answered.
 * 2. The guard runs once for each call, and no handler before it.
 * 3. Before its guard has named the caller, a call counts as one of its network's; from then on as
 *    one of that caller's.
 *
 * It knows no transport: gRPC and HTTP/1.1 bring an `Arrival` each.
 */
import { ApiFailure, type Guard } from '@rackwright/messages';
import { type CallRoom, callerNamed } from './call-room.ts';
import type { CallScope } from './call-scope.ts';
import type { RefusedCalls } from './refused-calls.ts';

/** A call whose headers are here and whose body is not read. */
export interface Arrival {
  /** The name under which its entrance was added. */
  readonly entrance: string;
  readonly peerAddress: string;
  /** Tells this call from every other. */
  readonly key: object;
  /** Its connection, which other calls may use too; undefined: it is gone. */
  readonly connection: object | undefined;
  readonly isOver: boolean;
  /** Calls `listener` once, when it is over. */
  onOver(listener: () => void): void;
  /** Opens its scope; `vouch` becomes part of its context. */
  open(vouch: () => void): CallScope;
  /** Ends its connection, behind the answer that precedes. */
  endConnection(refused: RefusedCalls): void;
}

/** A service's requirements of its callers. */
export interface Entrance {
  /** Undefined: nothing. */
  readonly guard: Guard | undefined;
  /** The service's name when it needs no token: it has room of its own for that. */
  readonly openTo: string | undefined;
  /**
   * Whether the handler authenticates the caller: then its refusal counts like a guard's. Unset: it
   * does where there is neither a guard nor an open service.
   */
  readonly handlerRefuses?: boolean;
}

/** An admitted call. */
export interface AdmittedCall {
  readonly scope: CallScope;
  /** It is over. Idempotent. */
  readonly leave: () => void;
  /**
   * The answer for an error that its handler has thrown: where no guard authenticates the caller,
   * the handler may refuse it, and that counts as a refused call like any other.
   */
  readonly refusal: (error: unknown) => unknown;
}

function refusesCaller(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return false;
  return error.error.kind === 'unauthenticated' || error.error.kind === 'permissionDenied';
}

export class Admissions {
  readonly #entrances = new Map<string, Entrance>();
  readonly #admitted = new WeakMap<object, AdmittedCall>();
  readonly #room: CallRoom;
  readonly #refused: RefusedCalls;
  readonly #vouchFor: (peerAddress: string) => void;

  /** `vouchFor` is called with the address of each caller that has authenticated. */
  constructor(room: CallRoom, refused: RefusedCalls, vouchFor: (peerAddress: string) => void) {
    this.#room = room;
    this.#refused = refused;
    this.#vouchFor = vouchFor;
  }

  /** Adds an entrance: its calls are admitted by these rules from now on. */
  add(name: string, entrance: Entrance): void {
    this.#entrances.set(name, entrance);
  }

  /** Throws the refusal. A connection with too many refusals is closed. */
  async admit(arrival: Arrival): Promise<void> {
    try {
      await this.#letIn(arrival);
    } catch (error) {
      throw this.#noted(arrival, error);
    }
  }

  /** The answer in place of `error`, which refuses a call. */
  #noted(arrival: Arrival, error: unknown): unknown {
    const { connection, peerAddress } = arrival;
    if (connection === undefined) return error;
    const last = this.#refused.note(connection, peerAddress);
    if (last === undefined) return error;
    arrival.endConnection(this.#refused);
    return last;
  }

  async #letIn(arrival: Arrival): Promise<void> {
    const entrance = this.#entrances.get(arrival.entrance);
    if (entrance === undefined) throw new Error(`${arrival.entrance} has no entrance`);
    const { guard, openTo } = entrance;
    const vouch = () => this.#vouchFor(arrival.peerAddress);
    const scope = arrival.open(vouch);
    const stay = this.#room.enter(scope, openTo, guard !== undefined);
    const leave = () => {
      stay.leave();
      scope.abort();
    };
    if (arrival.isOver) return leave();
    arrival.onOver(leave);
    try {
      if (openTo !== undefined) await this.#room.waitForSlot(scope, openTo);
      const caller = await guard?.(scope.context);
      if (caller !== undefined) stay.attributeTo(callerNamed(caller));
    } catch (error) {
      leave();
      throw error;
    }
    // Without a guard the handler may authenticate the caller, and then calls `vouch`.
    if (guard !== undefined) vouch();
    const isUnknown = entrance.handlerRefuses ?? (guard === undefined && openTo === undefined);
    const refusal = (error: unknown) =>
      isUnknown && refusesCaller(error) ? this.#noted(arrival, error) : error;
    this.#admitted.set(arrival.key, { scope, leave, refusal });
  }

  /** The admitted call of this key, for which a handler has been called. */
  of(key: object | undefined): AdmittedCall {
    const admitted = key && this.#admitted.get(key);
    if (admitted === undefined) throw new Error('a call has come past its entrance');
    return admitted;
  }
}
