/**
 * The form of a service: written once, as plain functions `(request, context) → response or async
 * iterable`, independent of any transport.
 */
import type { DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';

/** The peer of a call, as TLS proved it. */
export interface PeerCertificate {
  /** The certificate, DER. */
  readonly der: Uint8Array;
  /** SHA-256 of the certificate (DER), lower-case hex. */
  readonly fingerprintSha256: string;
  /** SHA-256 of the public key (SubjectPublicKeyInfo, DER), lower-case hex. */
  readonly publicKeySha256: string;
  /** Subject alternative names of type URI. */
  readonly uris: readonly string[];
}

/** A handler's view of its call. */
export interface CallContext {
  /** "/rackwright.v1.HostService/GetHost" */
  readonly method: string;
  /** First value of a header, by lower-case name; undefined when absent. */
  header(name: string): string | undefined;
  /** "address:port" of the other end. */
  readonly peerAddress: string;
  /** Which address of this machine it dialled, without the port. Unset where there is no wire. */
  readonly localAddress?: string;
  /**
   * The client's certificate, valid and signed by the server's client CA; undefined on servers
   * that demand none.
   */
  peerCertificate(): PeerCertificate | undefined;
  /** Aborted when the caller has gone, the deadline has passed, or the server closes. */
  readonly signal: AbortSignal;
  /** Wall time in milliseconds after which the caller no longer listens; Infinity when none. */
  readonly deadlineMs: number;
  /**
   * For services without a guard: their code calls it when it has verified that the caller is a
   * known one. The connection then stays, and its network shares the room for known callers. Unset
   * where there is no wire.
   */
  readonly vouch?: () => void;
  /**
   * Ends the call now, and discards data that is still in transit. Unset where there is no wire.
   */
  readonly cut?: () => void;
}

type MaybePromise<T> = T | Promise<T>;

/** The function that serves method `M`. Errors for the caller are thrown as `ApiFailure`. */
export type Handler<M extends DescMethod> = M['methodKind'] extends 'unary'
  ? (
      request: MessageShape<M['input']>,
      context: CallContext,
    ) => MaybePromise<MessageInitShape<M['output']>>
  : M['methodKind'] extends 'server_streaming'
    ? (
        request: MessageShape<M['input']>,
        context: CallContext,
      ) => AsyncIterable<MessageInitShape<M['output']>>
    : M['methodKind'] extends 'bidi_streaming'
      ? (
          requests: AsyncIterable<MessageShape<M['input']>>,
          context: CallContext,
        ) => AsyncIterable<MessageInitShape<M['output']>>
      : never;

/** One handler for each method of service `S`; none may be missing. */
export type Handlers<S extends DescService> = {
  readonly [K in keyof S['method']]: Handler<S['method'][K]>;
};

/** A service together with its handlers, ready for a server. */
export interface BoundService {
  readonly service: DescService;
  /** By the method's local name. */
  readonly handlers: Readonly<Record<string, AnyHandler>>;
}

/** A handler once its message types are erased; only the adapter calls it. */
export type AnyHandler = (input: never, context: CallContext) => unknown;

/** Ties handlers to their service. The types check that each method has one that fits. */
export function bind<S extends DescService>(service: S, handlers: Handlers<S>): BoundService {
  const byName: Readonly<Record<string, unknown>> = handlers;
  return { service, handlers: byName as Readonly<Record<string, AnyHandler>> };
}

/**
 * Admits a call, or throws the `ApiFailure` that refuses it. Returns the caller's name: the same
 * name for the same caller, for each of its credentials; undefined: only its network is known.
 */
export type Guard = (context: CallContext) => string | undefined | Promise<string | undefined>;

/**
 * Called with the cost of decoding each message, in bytes, before it is decoded. The returned
 * promise delays the message, and the reading of the next one; undefined: no delay. So a sender is
 * slowed down because nothing reads from it.
 */
export type Pace = (costBytes: number) => Promise<void> | undefined;
