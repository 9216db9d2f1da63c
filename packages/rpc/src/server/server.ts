/**
 * Serves bound services over gRPC with TLS on one port, and on request over HTTP/1.1 on the same
 * port (`overHttp`): the client's ALPN offer decides.
 *
 * Invariants:
 * 1. Plain text is refused by construction: there are only TLS credentials.
 * 2. The guard runs before every handler, of every service but those named open, and before
 *    anything of the call's body is read.
 * 3. Only an `ApiFailure` reaches the caller as it is; anything else becomes `internal` with a
 *    reference that the log has too, and its cause stays in the log.
 * 4. Every call's signal is aborted when the call is over, for every cause.
 * 5. No object is made of a message before its bytes were found to be within its method's limits.
 * 6. `RpcLimits` bounds callers' use of this process. A refusal because there is no room says when
 *    to retry. A connection that goes on calling while it is refused is closed.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import '../wire/quiet.ts';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerInterceptor,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import type {
  AnyHandler,
  ApiFailure,
  BoundService,
  CallContext,
  Guard,
  Pace,
} from '@rackwright/messages';
import type { Clock, Log, Random } from '@rackwright/platform';
import { limitsOfMethod } from '../bounds/method-limits.ts';
import { type GuardedListener, openGuardedListener } from '../connections/guarded-listener.ts';
import type { ListenerCounts } from '../connections/handshake-slots.ts';
import { encodeMessage, tooMuch } from '../wire/codec.ts';
import { defaultRpcLimits, type RpcLimits } from '../wire/limits.ts';
import { statusDetailsKey, toStatus } from '../wire/status.ts';
import { iterate, pump } from '../wire/stream.ts';
import type { KeyAndChain, ServerTls } from '../wire/tls.ts';
import { Admissions, type Entrance } from './admission.ts';
import { callerGone, failureForCaller, serverClosing } from './call-failures.ts';
import { CallRoom } from './call-room.ts';
import { type SurfaceCall, streamOf } from './call-scope.ts';
import {
  type Admit,
  boundIncoming,
  type CallRefusal,
  type FirstSize,
  IncomingRequests,
} from './first-message.ts';
import { grpcArrival } from './grpc-arrival.ts';
import type { HttpListener, OpenHttp } from './http-parts.ts';
import { RefusedCalls } from './refused-calls.ts';
import { readRequest, requestReader } from './requests.ts';

export interface ServeOptions {
  /** IPv4 or IPv6 address to listen on. */
  readonly address: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly tls: ServerTls;
  readonly services: readonly BoundService[];
  /** Runs before every handler (invariant 2). */
  readonly guard?: Guard;
  /** Services, by full name, that the guard does not apply to (health). */
  readonly openServices?: readonly string[];
  /** The read rate of a caller's stream; unset: unlimited. */
  readonly pace?: (context: CallContext) => Pace;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<RpcLimits>;
  /**
   * Serves clients that offer HTTP/1.1 (`overHttp`); unset: HTTP/2 alone. Not with `clientCaPem`:
   * over HTTP/1.1 headers prove the caller.
   */
  readonly http?: OpenHttp;
}

/** A listening server. */
export interface RpcServer {
  readonly port: number;
  /** The server's present counts. */
  readonly counts: ServerCounts;
  /**
   * Undefined when it listens and shakes hands, else the problem. The check needs no room: a server
   * that is full of callers is healthy.
   */
  problem(timeoutMs: number): Promise<string | undefined>;
  /** Uses another key and chain, and other client CAs where given, for new connections. */
  replaceCertificate(next: KeyAndChain & Partial<Pick<ServerTls, 'clientCaPem'>>): void;
  /** Aborts every open call, waits for them up to `closeGraceMs`, then cuts. */
  close(): Promise<void>;
}

/** A server's counts of its callers. */
export interface ServerCounts extends ListenerCounts {
  readonly calls: number;
  /** Calls that were refused so far because there was no room. */
  readonly callsRefused: number;
  /** Connections closed so far of which too many calls were refused. */
  readonly refusedEnded: number;
  /** Memory of requests that are not whole yet, in bytes. */
  readonly incomingBytes: number;
  /** Requests that were ended so far, before they were whole, because there was no room. */
  readonly incomingEnded: number;
}

interface SharedParts {
  readonly admissions: Admissions;
  readonly pace: ((context: CallContext) => Pace) | undefined;
  readonly log: Log;
  readonly random: Random;
}

/** Starts listening. Rejects with a sentence that names the address when it cannot. */
export async function serve(options: ServeOptions): Promise<RpcServer> {
  const { clock, log, random, pace } = options;
  const limits = { ...defaultRpcLimits, ...options.limits };
  const incoming = new IncomingRequests(limits);
  const room = new CallRoom(limits, clock);
  const refused = new RefusedCalls(limits, clock);
  // No call arrives before the listener is open.
  const opened: { listener?: GuardedListener } = {};
  const admissions = new Admissions(room, refused, (peerAddress) =>
    opened.listener?.vouchFor(peerAddress),
  );
  const shared = { admissions, pace, log, random };
  const server = grpcServer(limits, [
    boundIncoming(incoming, limits, clock, admitting(shared), sizesOf(options.services)),
  ]);
  for (const bound of options.services) {
    const { typeName } = bound.service;
    const openTo = options.openServices?.includes(typeName) === true ? typeName : undefined;
    const guard = openTo === undefined ? options.guard : undefined;
    register(server, bound, { guard, openTo }, shared);
  }
  // Not insecure: only connections that have completed their TLS handshake at the listener arrive
  // here.
  const inside = server.createConnectionInjector(ServerCredentials.createInsecure());
  const http = openHttp(options, { admissions, incoming, limits });
  const listener = await openGuardedListener({
    ...options,
    limits,
    protocols: http === undefined ? 'h2' : 'h2AndHttp1',
    handOver: (socket) => {
      if (http === undefined || socket.alpnProtocol === 'h2') inside.injectConnection(socket);
      else http.take(socket);
    },
  });
  opened.listener = listener;
  return {
    port: listener.port,
    get counts() {
      return {
        ...listener.counts,
        calls: room.size,
        callsRefused: room.refused,
        refusedEnded: refused.ended,
        incomingBytes: incoming.bytes,
        incomingEnded: incoming.ended,
      };
    },
    problem: (timeoutMs) => listener.problem(timeoutMs),
    replaceCertificate: (next) => listener.replaceCertificate(next),
    close: () => close(server, { listener, http, room }, { clock, limits }),
  };
}

function openHttp(
  options: ServeOptions,
  parts: { admissions: Admissions; incoming: IncomingRequests; limits: RpcLimits },
): HttpListener | undefined {
  const { http, tls } = options;
  if (http === undefined) return undefined;
  if (tls.clientCaPem !== undefined) {
    throw new Error('HTTP/1.1 is not served where clients show certificates');
  }
  return http({ ...options, ...parts });
}

function grpcServer(limits: RpcLimits, interceptors: ServerInterceptor[]): Server {
  return new Server({
    'grpc.max_receive_message_length': limits.messageBytesMax,
    'grpc.max_send_message_length': limits.messageBytesMax,
    'grpc.max_concurrent_streams': limits.callsPerConnectionMax,
    'grpc.keepalive_time_ms': limits.keepaliveAfterMs,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs,
    'grpc.max_connection_idle_ms': limits.connectionIdleMs,
    'grpc.enable_channelz': 0,
    interceptors,
  });
}

/** By path: the maximum size of the first message, and how a larger one ends its call. */
function sizesOf(services: readonly BoundService[]): ReadonlyMap<string, FirstSize> {
  const sizes = new Map<string, FirstSize>();
  for (const { service } of services) {
    for (const method of service.methods) {
      const { bytesMax: most } = limitsOfMethod(method).first;
      const refuse = (found: number): CallRefusal =>
        statusOf(tooMuch(method.input.typeName, { limit: 'bytes', found, most }));
      sizes.set(`/${service.typeName}/${method.name}`, { bytesMax: most, refuse });
    }
  }
  return sizes;
}

/** Its refusals are the same as those of handlers. */
function admitting(shared: SharedParts): Admit {
  return (call, path, metadata) =>
    shared.admissions.admit(grpcArrival(call, path, metadata)).then(
      () => undefined,
      (error: unknown) => errorStatus(error, path, shared),
    );
}

function register(
  server: Server,
  { service, handlers }: BoundService,
  entrance: Entrance,
  shared: SharedParts,
): void {
  for (const method of service.methods) {
    const handler = handlers[method.localName];
    if (handler === undefined) {
      throw new Error(`${service.typeName}.${method.name} has no handler`);
    }
    const path = `/${service.typeName}/${method.name}`;
    const [type, listener] = serveMethod(method, handler, path, shared);
    shared.admissions.add(path, entrance);
    server.register(path, listener, asIs, asIs, type);
  }
}

function serveMethod(method: DescMethod, handler: AnyHandler, path: string, shared: SharedParts) {
  switch (method.methodKind) {
    case 'unary':
      return ['unary', unary(method, handler, path, shared)] as const;
    case 'server_streaming':
      return ['serverStream', serverStreaming(method, handler, path, shared)] as const;
    case 'bidi_streaming':
      return ['bidi', bidiStreaming(method, handler, path, shared)] as const;
    case 'client_streaming':
      throw new Error(`${path}: client streaming is not served; make it bidirectional`);
  }
}

function unary(method: DescMethod, handler: AnyHandler, path: string, shared: SharedParts) {
  return (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>): void => {
    void inScope(
      call,
      path,
      shared,
      (status) => reply(status),
      async (context) => {
        const request = readRequest(method, call.request);
        const response = await handler(request as never, context);
        reply(null, encodeMessage(method.output, response as never));
      },
    );
  };
}

function serverStreaming(
  method: DescMethod,
  handler: AnyHandler,
  path: string,
  shared: SharedParts,
) {
  return (call: ServerWritableStream<Buffer, Buffer>): void => {
    void inScope(
      call,
      path,
      shared,
      (status) => call.emit('error', status),
      async (context) => {
        const request = readRequest(method, call.request);
        const responses = handler(request as never, context) as AsyncIterable<never>;
        const encode = (response: never) => encodeMessage(method.output, response);
        if (!(await pump(responses, call, encode, context.signal))) throw serverClosing();
        call.end();
      },
    );
  };
}

function bidiStreaming(method: DescMethod, handler: AnyHandler, path: string, shared: SharedParts) {
  return (call: ServerDuplexStream<Buffer, Buffer>): void => {
    void inScope(
      call,
      path,
      shared,
      (status) => call.emit('error', status),
      async (context) => {
        const reader = requestReader(method);
        const requests = iterate(call, reader, context.signal, callerGone, shared.pace?.(context));
        const responses = handler(requests as never, context) as AsyncIterable<never>;
        const encode = (response: never) => encodeMessage(method.output, response);
        if (!(await pump(responses, call, encode, context.signal))) throw serverClosing();
        call.end();
      },
    );
  };
}

async function inScope(
  call: SurfaceCall,
  path: string,
  shared: SharedParts,
  refuse: (status: CallRefusal) => void,
  work: (context: CallContext) => Promise<void>,
): Promise<void> {
  const { scope, leave, refusal } = shared.admissions.of(streamOf(call));
  // grpc-js says "cancelled" for a lost caller, a passed deadline, and at the end of every call.
  call.on('cancelled', () => scope.abort());
  if (call.cancelled) scope.abort();
  try {
    await work(scope.context);
  } catch (error) {
    refuse(errorStatus(refusal(error), path, shared));
  } finally {
    // A unary or failed call is over once answered; grpc-js reports that too, but only later.
    leave();
  }
}

function errorStatus(error: unknown, path: string, shared: SharedParts): CallRefusal {
  return statusOf(failureForCaller(error, path, shared));
}

function statusOf({ error }: ApiFailure): CallRefusal {
  const { code, message, details } = toStatus(error);
  const metadata = new Metadata();
  metadata.set(statusDetailsKey, Buffer.from(details));
  return { code, details: message, metadata };
}

interface OpenPort {
  readonly listener: GuardedListener;
  readonly http: HttpListener | undefined;
  readonly room: CallRoom;
}

async function close(
  server: Server,
  { listener, http, room }: OpenPort,
  parts: Closing,
): Promise<void> {
  listener.close();
  const grpcEnded = closeGrpc(server, parts);
  const httpEnded = http?.close();
  room.abortAll();
  await grpcEnded;
  await httpEnded;
}

interface Closing {
  readonly clock: Clock;
  readonly limits: RpcLimits;
}

function closeGrpc(server: Server, { clock, limits }: Closing): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(limits.closeGraceMs, () => {
      server.forceShutdown();
      resolve();
    });
    server.tryShutdown(() => {
      cancel();
      resolve();
    });
  });
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
