/** A request over HTTP/1.1 as the admissions see it. */

import type { IncomingMessage } from 'node:http';
import { parseTimeout as connectTimeout } from '@connectrpc/connect/protocol-connect';
import { parseTimeout as grpcTimeout } from '@connectrpc/connect/protocol-grpc';
import type { CallContext } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { Arrival } from '../server/admission.ts';
import type { CallScope } from '../server/call-scope.ts';
import type { RefusedCalls } from '../server/refused-calls.ts';
import type { Exchange } from './http-listener.ts';

export type HttpArrival = Arrival;

/** A request of this path, admitted by `entrance`. It is known by its response. */
export function httpArrival(
  exchange: Exchange,
  { entrance, path }: { readonly entrance: string; readonly path: string },
  clock: Pick<Clock, 'nowMs'>,
): HttpArrival {
  const { request, response, socket } = exchange;
  const peerAddress = `${socket.remoteAddress}:${socket.remotePort}`;
  return {
    entrance,
    peerAddress,
    key: response,
    connection: socket,
    get isOver() {
      return response.closed || response.destroyed || socket.destroyed;
    },
    onOver: (listener) => void response.once('close', listener),
    open: (vouch) => openScope(exchange, { path, peerAddress, vouch, nowMs: clock.nowMs() }),
    endConnection: (refused: RefusedCalls) => {
      response.shouldKeepAlive = false;
      response.once('close', () => refused.endPlain(socket));
      // A peer that does not read the answer is not waited for.
      request.once('close', () => refused.endPlain(socket));
    },
  };
}

interface Opening {
  readonly path: string;
  readonly peerAddress: string;
  readonly vouch: () => void;
  readonly nowMs: number;
}

/** Why signals of calls are aborted: one for all, since each of its own would cost a stack. */
const callOver = new Error('the call is over');

function openScope({ request, response, socket }: Exchange, opening: Opening): CallScope {
  const { path, peerAddress, vouch, nowMs } = opening;
  const over = new AbortController();
  const abort = () => over.abort(callOver);
  response.once('close', abort);
  const { localAddress } = socket;
  const context: CallContext = {
    method: path,
    header: (name) => headerOf(request, name),
    peerAddress,
    ...(localAddress === undefined ? {} : { localAddress }),
    peerCertificate: () => undefined,
    signal: over.signal,
    deadlineMs: nowMs + timeoutMsOf(request),
    vouch,
    cut: () => {
      abort();
      socket.destroy();
    },
  };
  return { context, abort };
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

function timeoutMsOf(request: IncomingMessage): number {
  const ofConnect = headerOf(request, 'connect-timeout-ms');
  const ofGrpc = headerOf(request, 'grpc-timeout');
  const found =
    ofConnect === undefined
      ? grpcTimeout(ofGrpc ?? null, Infinity)
      : connectTimeout(ofConnect, Infinity);
  return found.timeoutMs ?? Infinity;
}

/**
 * The requested path, from its first "/" on, without the query; of the absolute form (RFC 9112
 * §3.2.2) without the part before it. Nothing of it is decoded.
 */
export function pathOf({ url = '' }: IncomingMessage): string {
  return targetOf(url).split('?', 1)[0] ?? '';
}

/** The part behind the path. */
export function queryOf({ url = '' }: IncomingMessage): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at));
}

function targetOf(url: string): string {
  return /^https?:\/\/[^/]*(\/.*)?$/i.exec(url)?.[1] ?? url;
}
