/**
 * Lets calls in by their headers: before any of a call's body is read, it has room, and whoever
 * makes it has shown a token or certificate that is good, where one is asked for.
 *
 * Invariants:
 * 1. A call has its room from its headers until its stream is closed or it is answered.
 * 2. The guard runs once for each call, and no handler before it.
 */
import type { ServerHttp2Stream } from 'node:http2';
import type { Metadata, ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { CallRoom } from './call-room.ts';
import { type CallScope, openCall, type SurfaceCall, streamOf } from './call-scope.ts';
import type { CallContext } from './handlers.ts';

/** The innermost call of grpc-js, whose stream alone tells what has come of a message. */
export type StreamCall = ServerInterceptingCallInterface & { readonly stream: ServerHttp2Stream };

/** What a service asks of its callers. */
export interface Entrance {
  /** Undefined: nothing. */
  readonly guard: ((context: CallContext) => void | Promise<void>) | undefined;
  /** Needs no token, and has room of its own for that. */
  readonly isOpen: boolean;
}

/** A call that was let in. */
export interface Admitted {
  readonly scope: CallScope;
  /** It is over. Idempotent. */
  readonly leave: () => void;
}

export class Admissions {
  readonly #entrances = new Map<string, Entrance>();
  readonly #admitted = new WeakMap<object, Admitted>();
  readonly #room: CallRoom;
  readonly #vouchFor: (peerAddress: string) => void;

  /** `vouchFor` is called with the address of who has shown who it is. */
  constructor(room: CallRoom, vouchFor: (peerAddress: string) => void) {
    this.#room = room;
    this.#vouchFor = vouchFor;
  }

  /** From now on calls of this path are let in so. */
  add(path: string, entrance: Entrance): void {
    this.#entrances.set(path, entrance);
  }

  /** Throws what refuses it. */
  async admit(call: StreamCall, path: string, metadata: Metadata): Promise<void> {
    const entrance = this.#entrances.get(path);
    if (entrance === undefined) throw new Error(`${path} has no entrance`);
    const { stream } = call;
    const scope = openCall(surfaceOf(call, metadata), path);
    const leaveRoom = this.#room.enter(scope, entrance.isOpen);
    const leave = () => {
      leaveRoom();
      scope.abort();
    };
    if (stream.closed || stream.destroyed) return leave();
    stream.once('close', leave);
    try {
      await entrance.guard?.(scope.context);
    } catch (error) {
      leave();
      throw error;
    }
    // Where nothing is asked for, there is nothing more to show.
    if (!entrance.isOpen) this.#vouchFor(scope.context.peerAddress);
    this.#admitted.set(stream, { scope, leave });
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
