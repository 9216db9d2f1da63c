/**
 * Requests that are on their way and not whole yet: how long each may take, and how much memory
 * they may hold together. No handler knows of them so far. Nothing of a body is read before the
 * guard has admitted its call.
 *
 * Invariants:
 * 1. A request is whole within the time allowed, or its call is ended. It is whole with its end;
 *    the one that opens a stream of requests, with its first message.
 * 2. Requests under way hold no more than allowed, their bare existence included. When there are
 *    more, the oldest of the address that holds most are ended. Other addresses keep theirs.
 * 3. A first message that already exceeds its method's limit ends its call before it is whole: its
 *    bytes are not gathered.
 * 4. Nothing of a call that was ended here is kept, whether or not its caller goes away.
 */
import { constants, type ServerHttp2Stream } from 'node:http2';
import {
  status as Code,
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import { unavailable } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import { networkOfPeer } from '../wire/caller-address.ts';
import type { RpcLimits } from '../wire/limits.ts';
import { statusDetailsKey, toStatus } from '../wire/status.ts';
import type { StreamCall } from './grpc-arrival.ts';
import { SentAhead } from './sent-ahead.ts';

export type IncomingLimits = Pick<
  RpcLimits,
  'firstMessageMs' | 'incomingBytesMax' | 'retryAfterMs'
>;

/** The cost of a call by its mere existence, in bytes: its stream, its headers, its timer. */
export const callCostBytes = 16 * 1024;
/** The cost of each piece of a body beside its length, in bytes. */
const pieceCostBytes = 256;

interface IncomingCall {
  readonly address: string;
  bytes: number;
  /** Ends the call, because there is no room. */
  readonly end: () => void;
}

/** The memory of requests under way (invariant 2). */
export class IncomingRequests {
  readonly #limits: IncomingLimits;
  /** By address; each address's oldest first. */
  readonly #addresses = new Map<string, { bytes: number; readonly calls: Set<IncomingCall> }>();
  #bytes = 0;
  #ended = 0;

  constructor(limits: IncomingLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Requests that were ended so far because there was no room. */
  get ended(): number {
    return this.#ended;
  }

  /** A request from this address is coming. */
  begin(address: string, end: () => void): IncomingCall {
    const call = { address, bytes: 0, end };
    const own = this.#addresses.get(address) ?? { bytes: 0, calls: new Set() };
    this.#addresses.set(address, own);
    own.calls.add(call);
    this.grow(call, callCostBytes);
    return call;
  }

  /** So much more of it is here. */
  grow(call: IncomingCall, bytes: number): void {
    const own = this.#addresses.get(call.address);
    if (own?.calls.has(call) !== true) return;
    call.bytes += bytes;
    own.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#limits.incomingBytesMax) {
      const oldest = this.#oldestOfMost();
      if (oldest === undefined) return;
      this.#ended += 1;
      this.release(oldest);
      oldest.end();
    }
  }

  /** It is whole, or gone. Idempotent. */
  release(call: IncomingCall): void {
    const own = this.#addresses.get(call.address);
    if (own?.calls.delete(call) !== true) return;
    own.bytes -= call.bytes;
    this.#bytes -= call.bytes;
    if (own.calls.size === 0) this.#addresses.delete(call.address);
  }

  #oldestOfMost(): IncomingCall | undefined {
    let most: { bytes: number; readonly calls: Set<IncomingCall> } | undefined;
    for (const own of this.#addresses.values()) {
      if (most === undefined || own.bytes > most.bytes) most = own;
    }
    const [oldest] = most?.calls ?? [];
    return oldest;
  }
}

/** An interceptor that keeps requests under way to these limits. */
export function boundIncoming(
  requests: IncomingRequests,
  limits: IncomingLimits,
  clock: Clock,
  admit: Admit,
  sizes: ReadonlyMap<string, FirstSize>,
): ServerInterceptor {
  return ({ path, requestStream }, call) => {
    if (!hasStream(call)) throw new Error(`${path}: grpc-js shows no stream; its version is wrong`);
    const size = sizes.get(path);
    return new Incoming(call, { path, requests, limits, clock, requestStream, admit, size });
  };
}

/** The status of a refused call. */
export interface CallRefusal {
  readonly code: Code;
  readonly details: string;
  readonly metadata: Metadata;
}

/** Decides by a call's headers; undefined: it is admitted. */
export type Admit = (
  call: StreamCall,
  path: string,
  metadata: Metadata,
) => Promise<CallRefusal | undefined>;

/** The first message of a method: its maximum size, and how a larger one ends its call. */
export interface FirstSize {
  readonly bytesMax: number;
  refuse(bytes: number): CallRefusal;
}

/** Bytes that may follow a stream's first message before that one is known to be whole. */
const behindFirstBytesMax = 64 * 1024;

function hasStream(call: ServerInterceptingCallInterface): call is StreamCall {
  return 'stream' in call;
}

interface IncomingParts {
  readonly path: string;
  readonly admit: Admit;
  readonly requests: IncomingRequests;
  readonly limits: IncomingLimits;
  readonly clock: Clock;
  readonly requestStream: boolean;
  readonly size: FirstSize | undefined;
}

class Incoming extends ServerInterceptingCall {
  readonly #requests: IncomingRequests;
  readonly #stream: ServerHttp2Stream;
  readonly #requestStream: boolean;
  readonly #admit: (metadata: Metadata) => Promise<CallRefusal | undefined>;
  readonly #incoming: IncomingCall;
  readonly #cancel: Cancel;
  readonly #piece = (piece: Buffer): void => {
    this.#requests.grow(this.#incoming, piece.length + pieceCostBytes);
    this.#come += piece.length;
    const size = this.#size;
    if (size === undefined || this.#come <= size.bytesMax + behindFirstBytesMax) return;
    const { code, details, metadata } = size.refuse(this.#come);
    this.#end(code, details, metadata);
  };
  readonly #size: FirstSize | undefined;
  /** Bytes of the body so far. */
  #come = 0;
  readonly #ahead = new SentAhead();

  constructor(call: StreamCall, parts: IncomingParts) {
    super(call);
    const { path, requests, limits, clock, requestStream, admit, size } = parts;
    this.#size = size;
    const { firstMessageMs, retryAfterMs } = limits;
    this.#requests = requests;
    this.#stream = call.stream;
    this.#requestStream = requestStream;
    this.#admit = (metadata) => admit(call, path, metadata);
    this.#cancel = clock.after(firstMessageMs, () => {
      const text = `The first message of a call must be complete within ${firstMessageMs} ms.`;
      this.#end(Code.DEADLINE_EXCEEDED, text, null);
    });
    // The call listens already, and has paused the stream: this one more listener starts nothing.
    this.#stream.on('data', this.#piece);
    this.#incoming = requests.begin(networkOfPeer(call.getPeer()), () =>
      this.#endForRoom(retryAfterMs),
    );
  }

  override start(listener: Parameters<ServerInterceptingCall['start']>[0]): void {
    super.start({
      // Nothing is read of the body before the listener asks for it.
      onReceiveMetadata: (metadata) => {
        void this.#admit(metadata).then((refusal) => {
          if (this.#stream.closed || this.#stream.destroyed) return;
          if (refusal === undefined) listener.onReceiveMetadata(metadata);
          else this.#end(refusal.code, refusal.details, refusal.metadata);
        });
      },
      onReceiveMessage: (message: Buffer) => {
        if (this.#requestStream) this.#whole();
        // It may be compressed: its content is larger than the received bytes.
        else this.#requests.grow(this.#incoming, message.length);
        listener.onReceiveMessage(message);
      },
      onReceiveHalfClose: () => {
        this.#whole();
        listener.onReceiveHalfClose();
      },
      onCancel: () => {
        this.#whole();
        listener.onCancel();
      },
    });
  }

  override sendMessage(message: Buffer, sent: () => void): void {
    this.#ahead.send(message.length, sent, (gone) => super.sendMessage(message, gone));
  }

  override sendStatus(...status: Parameters<ServerInterceptingCall['sendStatus']>): void {
    this.#whole();
    super.sendStatus(...status);
  }

  #whole(): void {
    this.#cancel();
    this.#stream.off('data', this.#piece);
    this.#requests.release(this.#incoming);
  }

  #endForRoom(retryAfterMs: number): void {
    const text = 'More is on its way to this server than it has room for; come again later.';
    const { error } = unavailable('TOO_MUCH_UNDER_WAY', text, retryAfterMs);
    const { code, message, details } = toStatus(error);
    const metadata = new Metadata();
    metadata.set(statusDetailsKey, Buffer.from(details));
    // Its own constructor may have made the requests too many.
    queueMicrotask(() => this.#end(code, message, metadata));
  }

  /** Invariant 4: a stream that has been answered stays, with its buffers, until it is closed. */
  #end(code: Code, details: string, metadata: Metadata | null): void {
    const stream = this.#stream;
    const isAnswered = stream.headersSent;
    this.sendStatus({ code, details, metadata });
    if (!isAnswered) stream.close(constants.NGHTTP2_NO_ERROR);
  }
}
