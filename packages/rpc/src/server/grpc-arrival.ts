/** A call of grpc-js as the admissions see it. */
import type { ServerHttp2Stream } from 'node:http2';
import type { Metadata, ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { Arrival } from './admission.ts';
import { openCall, type SurfaceCall } from './call-scope.ts';
import type { RefusedCalls } from './refused-calls.ts';

/** The innermost call of grpc-js; only its stream shows how much of a message has arrived. */
export type StreamCall = ServerInterceptingCallInterface & { readonly stream: ServerHttp2Stream };

/** Its entrance is its path; it is known by its stream. */
export function grpcArrival(call: StreamCall, path: string, metadata: Metadata): Arrival {
  const { stream } = call;
  return {
    entrance: path,
    peerAddress: call.getPeer(),
    key: stream,
    connection: stream.session,
    get isOver() {
      return stream.closed || stream.destroyed;
    },
    onOver: (listener) => void stream.once('close', listener),
    open: (vouch) => openCall(surfaceOf(call, metadata), path, vouch),
    endConnection: (refused) => endHttp2Connection(stream, refused),
  };
}

/** Ends it behind the refusal, which is sent as soon as this returns. */
function endHttp2Connection({ session }: ServerHttp2Stream, refused: RefusedCalls): void {
  if (session !== undefined) setImmediate(() => refused.end(session));
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
