/** One call's context and the signal that ends it. */
import { X509Certificate } from 'node:crypto';
import type { Writable } from 'node:stream';
import type { Metadata } from '@grpc/grpc-js';
import {
  type CallContext,
  type PeerCertificate,
  publicKeySha256,
  sha256Hex,
} from '@rackwright/messages';

/** The part of grpc-js's four kinds of call that the adapter uses. */
export interface SurfaceCall {
  readonly cancelled: boolean;
  readonly metadata: Metadata;
  getPeer(): string;
  getDeadline(): Date | number;
  /** grpc-js tells interceptors only. */
  getConnectionInfo?(): { readonly localAddress?: string | undefined };
  getAuthContext(): { readonly sslPeerCertificate?: { readonly raw: Buffer } | undefined };
  on(event: 'cancelled', listener: () => void): unknown;
  /** Present on the innermost call only. */
  readonly stream?: Partial<Pick<Writable, 'destroy'>>;
}

/** A call under way. */
export interface CallScope {
  readonly context: CallContext;
  /** Ends it: handlers see their signal aborted. Idempotent. */
  abort(): void;
}

/** Why signals of calls are aborted: one for all, since each of its own would cost a stack. */
const callOver = new Error('the call is over');

/** Opens the scope of a call that grpc-js has handed over. `vouch` becomes part of its context. */
export function openCall(call: SurfaceCall, method: string, vouch: () => void): CallScope {
  const over = new AbortController();
  const abort = () => over.abort(callOver);
  // grpc-js says "cancelled" for a lost caller, a passed deadline, and at the end of every call.
  call.on('cancelled', abort);
  if (call.cancelled) abort();
  const deadline = call.getDeadline();
  const localAddress = call.getConnectionInfo?.().localAddress;
  let certificate: PeerCertificate | undefined;
  const context: CallContext = {
    method,
    header: (name) => firstText(call.metadata, name),
    peerAddress: call.getPeer(),
    ...(localAddress === undefined ? {} : { localAddress }),
    peerCertificate: () => {
      certificate ??= readCertificate(call.getAuthContext().sslPeerCertificate?.raw);
      return certificate;
    },
    signal: over.signal,
    deadlineMs: typeof deadline === 'number' ? deadline : deadline.getTime(),
    vouch,
    cut: () => {
      abort();
      streamOf(call)?.destroy();
    },
  };
  return { context, abort };
}

interface Layer {
  /** Present on the calls of callers and interceptors: the one below. */
  readonly call?: Layer;
  readonly nextCall?: Layer;
  /** Present on the innermost one. */
  readonly stream?: Partial<Pick<Writable, 'destroy'>>;
}

/**
 * The HTTP/2 stream below a call. grpc-js has no way to end a call whose caller does not read: its
 * status waits behind all that was written before.
 */
export function streamOf(call: object): { destroy(): void } | undefined {
  let layer: Layer | undefined = call;
  while (layer !== undefined) {
    const { stream } = layer;
    if (stream?.destroy !== undefined) return stream as Writable;
    layer = layer.call ?? layer.nextCall;
  }
  return undefined;
}

function firstText(metadata: Metadata, name: string): string | undefined {
  const [value] = metadata.get(name);
  return typeof value === 'string' ? value : undefined;
}

/** grpc-js hands a certificate over only when TLS found it valid and signed by our client CA. */
function readCertificate(der: Buffer | undefined): PeerCertificate | undefined {
  if (der === undefined) return undefined;
  const certificate = new X509Certificate(der);
  return {
    der,
    fingerprintSha256: sha256Hex(der),
    publicKeySha256: publicKeySha256(certificate.publicKey),
    uris: urisOf(certificate),
  };
}

function urisOf(certificate: X509Certificate): string[] {
  return (certificate.subjectAltName ?? '')
    .split(', ')
    .filter((name) => name.startsWith('URI:'))
    .map((name) => name.slice('URI:'.length));
}
