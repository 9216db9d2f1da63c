/**
 * Lets calls in by their headers: before any of a call's body is read, it has room, and whoever
 * makes it has shown a token or certificate that is good, where one is asked for.
 *
 * Invariants:
 * 1. A call has its room from its headers until its stream is closed or it is answered.
 * 2. The guard runs once for each call, and no handler before it.
 * 3. Before its guard has said whose a call is, it counts as one of its network's; from then on as
 *    one of that caller's.
 */
import type { ServerHttp2Stream } from 'node:http2';
import type { Metadata, ServerInterceptingCallInterface } from '@grpc/grpc-js';
import { ApiFailure, type Guard } from '@rackwright/messages';
import { type CallRoom, callerNamed } from './call-room.ts';
import { type CallScope, openCall, type SurfaceCall, streamOf } from './call-scope.ts';
import type { RefusedCalls } from './refused-calls.ts';

/** The innermost call of grpc-js, whose stream alone tells what has come of a message. */
export type StreamCall = ServerInterceptingCallInterface & { readonly stream: ServerHttp2Stream };

/** What a service asks of its callers. */
export interface Entrance {
  /** Undefined: nothing. */
  readonly guard: Guard | undefined;
  /** The service's name when it needs no token: it has room of its own for that. */
  readonly openTo: string | undefined;
}

/** A call that was let in. */
export interface Admitted {
  readonly scope: CallScope;
  /** It is over. Idempotent. */
  readonly leave: () => void;
  /**
   * What to answer for what its handler has thrown: where no guard says who calls, the handler may
   * refuse the caller, and that is a refused call like any other.
   */
  readonly refusal: (error: unknown) => unknown;
}

function refusesCaller(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return false;
  return error.error.kind === 'unauthenticated' || error.error.kind === 'permissionDenied';
}

export class Admissions {
  readonly #entrances = new Map<string, Entrance>();
  readonly #admitted = new WeakMap<object, Admitted>();
  readonly #room: CallRoom;
  readonly #refused: RefusedCalls;
  readonly #vouchFor: (peerAddress: string) => void;

  /** `vouchFor` is called with the address of who has shown who it is. */
  constructor(room: CallRoom, refused: RefusedCalls, vouchFor: (peerAddress: string) => void) {
    this.#room = room;
    this.#refused = refused;
    this.#vouchFor = vouchFor;
  }

  /** From now on calls of this path are let in so. */
  add(path: string, entrance: Entrance): void {
    this.#entrances.set(path, entrance);
  }

  /** Throws what refuses it. A connection of which too many are refused is closed. */
  async admit(call: StreamCall, path: string, metadata: Metadata): Promise<void> {
    try {
      await this.#letIn(call, path, metadata);
    } catch (error) {
      throw this.#noted(call.stream, call.getPeer(), error);
    }
  }

  /** What to answer in place of `error`, which refuses a call. */
  #noted({ session }: ServerHttp2Stream, peerAddress: string, error: unknown): unknown {
    // It is gone.
    if (session === undefined) return error;
    const last = this.#refused.note(session, peerAddress);
    if (last === undefined) return error;
    // Behind the refusal, which is sent as soon as this is answered.
    setImmediate(() => this.#refused.end(session));
    return last;
  }

  async #letIn(call: StreamCall, path: string, metadata: Metadata): Promise<void> {
    const entrance = this.#entrances.get(path);
    if (entrance === undefined) throw new Error(`${path} has no entrance`);
    const { stream } = call;
    const { guard, openTo } = entrance;
    const vouch = () => this.#vouchFor(call.getPeer());
    const scope = openCall(surfaceOf(call, metadata), path, vouch);
    const stay = this.#room.enter(scope, openTo, guard !== undefined);
    const leave = () => {
      stay.leave();
      scope.abort();
    };
    if (stream.closed || stream.destroyed) return leave();
    stream.once('close', leave);
    try {
      if (openTo !== undefined) await this.#room.turn(scope, openTo);
      const caller = await guard?.(scope.context);
      if (caller !== undefined) stay.isOf(callerNamed(caller));
    } catch (error) {
      leave();
      throw error;
    }
    // Without a guard the handler may find out who calls, and then says so.
    if (guard !== undefined) vouch();
    const isUnknown = guard === undefined && openTo === undefined;
    const refusal = (error: unknown) =>
      isUnknown && refusesCaller(error) ? this.#noted(stream, call.getPeer(), error) : error;
    this.#admitted.set(stream, { scope, leave, refusal });
  }

  /** What became of a call that a handler has been called for. */
  of(call: SurfaceCall): Admitted {
    const stream = streamOf(call);
    const admitted = stream && this.#admitted.get(stream);
    if (admitted === undefined) throw new Error('a call has come past its entrance');
    return admitted;
  }
}

function surfaceOf(call: StreamCall, metadata: Metadata): SurfaceCall {
  const { stream } = call;
  return {
    cancelled: false,
    metadata,
    getPeer: () => call.getPeer(),
    getDeadline: () => call.getDeadline(),
    getAuthContext: () => call.getAuthContext(),
    getConnectionInfo: () => call.getConnectionInfo(),
    on: (_event, listener) => stream.once('close', listener),
    stream,
  };
}
