/**
 * Calls over HTTP/1.1: Connect and gRPC-Web, on the handlers, admissions and limits of gRPC.
 *
 * The library speaks both protocols, but it does not read the request. The request is read, checked
 * for size and decoded here, by the functions that serve gRPC. It reaches the implementation as a
 * context value. The library decodes an empty message in its place.
 *
 * Invariants:
 * 1. A call is admitted by its headers before anything is read of its body. No body is
 *    decompressed, so none is larger than it looks.
 * 2. A page of another site gets no call carried out: no header ever allows one (no CORS), only
 *    POST with a type that such a page may not send without permission is accepted, and a request
 *    that a browser marks as cross-site is refused.
 * 3. A failure is reported as in gRPC: code, message, and the details of google.rpc.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import {
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { compressionGzip } from '@connectrpc/connect-node';
import {
  type AnyHandler,
  type ApiFailure,
  permissionDenied,
  type Respond,
} from '@rackwright/messages';
import { limitsOfMethod } from '../bounds/method-limits.ts';
import type { AdmittedCall } from '../server/admission.ts';
import { type FailureParts, failureForCaller, serverClosing } from '../server/call-failures.ts';
import type { HttpParts, OpenHttp } from '../server/http-parts.ts';
import { readRequest } from '../server/requests.ts';
import { unlessAborted, untilAborted } from '../wire/stream.ts';
import { connectError } from './connect-error.ts';
import { cutWhenStalled, sendCall, sendWeb } from './http-answer.ts';
import { type HttpArrival, httpArrival, pathOf } from './http-arrival.ts';
import { expectBody, type IncomingBody } from './http-body.ts';
import { type Exchange, openHttpListener } from './http-listener.ts';
import { readJson } from './json-request.ts';
import {
  envelopeBytes,
  formatOf,
  messageIn,
  placeholderOf,
  type RequestFormat,
  refusePacked,
} from './request-format.ts';
import { answerWeb, webEntrance } from './web-answers.ts';

interface HttpCallsOptions extends HttpParts {
  readonly respond: Respond;
}

/** The state of a call when the library asks for its implementation. */
type Outcome =
  | { readonly kind: 'read'; readonly request: unknown; readonly admitted: AdmittedCall }
  | { readonly kind: 'refused'; readonly failure: ApiFailure };

const outcomeKey = createContextKey<Outcome | undefined>(undefined);

/** A longer timeout of a client than a timer can have is refused by the library. */
const timeoutMsMax = 2 ** 31 - 1;

interface ServedMethod {
  readonly method: DescMethod;
  readonly respond: UniversalHandler;
}

/**
 * Serves calls over HTTP/1.1, and answers all other requests by `respond`. For `ServeOptions.http`.
 */
export function overHttp(respond: Respond): OpenHttp {
  return (parts) => openHttpListener(answering({ ...parts, respond }), parts.limits, parts.clock);
}

/** Answers exchanges; never rejects. */
function answering(options: HttpCallsOptions): (exchange: Exchange) => Promise<void> {
  const calls = routesOf(options);
  options.admissions.add(webEntrance, {
    guard: undefined,
    openTo: webEntrance,
    handlerRefuses: true,
  });
  return async (exchange) => {
    const { limits, clock, log } = options;
    cutWhenStalled(exchange, clock, limits.answerStallMs);
    const path = pathOf(exchange.request);
    const served = calls.get(path);
    const entrance = served === undefined ? webEntrance : path;
    const arrival = httpArrival(exchange, { entrance, path }, clock);
    const body = expectBody(exchange, { ...options, peerAddress: arrival.peerAddress });
    try {
      if (served === undefined) await answerWeb(options, { exchange, arrival, body, path });
      else await answerCall(options, served, { exchange, arrival, body });
    } catch (error) {
      // The listener cuts an exchange that could not be answered.
      log.debug({ method: path }, 'an answer over HTTP broke off', error);
    } finally {
      body.release();
    }
  };
}

interface Call {
  readonly exchange: Exchange;
  readonly arrival: HttpArrival;
  readonly body: IncomingBody;
}

async function answerCall(
  options: HttpCallsOptions,
  served: ServedMethod,
  call: Call,
): Promise<void> {
  const { exchange, arrival } = call;
  const { request } = exchange;
  const format = formatOf(request.headers['content-type'], served.method);
  if (request.method !== 'POST' || format === undefined) return sendWeb(exchange, noCall(request));
  const outcome = await receive(options, served.method, call, format);
  const over = new AbortController();
  arrival.onOver(() => over.abort());
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    // The library gets the headers of the empty message in place of the received one.
    if (!bodyHeaders.has(name)) header.set(name, String(value));
  }
  const answer = await served.respond({
    ...{ httpVersion: '1.1', method: 'POST', url: `https://localhost${arrival.entrance}` },
    ...{ header, body: placeholderOf(format), signal: over.signal },
    contextValues: createContextValues().set(outcomeKey, outcome),
  });
  await sendCall(exchange, answer, over.signal);
}

const bodyHeaders: ReadonlySet<string> = new Set([
  ...['content-length', 'transfer-encoding'],
  ...['content-encoding', 'connect-content-encoding', 'grpc-encoding'],
]);

/** The answer for a request to the path of a call that is no valid call. */
function noCall({ method }: Exchange['request']) {
  if (method !== 'POST') return { status: 405, headers: { allow: 'POST' } };
  const types =
    'application/json, application/proto, application/connect+json, application/connect+proto, ' +
    'application/grpc-web+json, application/grpc-web+proto';
  return { status: 415, headers: { 'accept-post': types } };
}

/** Lets it in, and reads its request. */
async function receive(
  options: HttpCallsOptions,
  method: DescMethod,
  { exchange, arrival, body }: Call,
  format: RequestFormat,
): Promise<Outcome> {
  const { admissions } = options;
  try {
    if (exchange.request.headers['sec-fetch-site'] === 'cross-site') throw crossSite();
    await admissions.admit(arrival);
    const admitted = admissions.of(arrival.key);
    const { first } = limitsOfMethod(method);
    const bytesMax = first.bytesMax + (format.isEnveloped ? envelopeBytes : 0);
    refusePacked(exchange.request.headers['content-encoding']);
    const bytes = messageIn(await body.read(bytesMax, method.input.typeName), format);
    const request = format.isJson
      ? readJson(method.input, bytes, first)
      : readRequest(method, bytes);
    return { kind: 'read', request, admitted };
  } catch (error) {
    return { kind: 'refused', failure: failureForCaller(error, arrival.entrance, options) };
  }
}

function crossSite(): ApiFailure {
  return permissionDenied(
    'CROSS_SITE',
    'A page of another site asked for this; only pages of this control plane may.',
  );
}

function routesOf(options: HttpCallsOptions): ReadonlyMap<string, ServedMethod> {
  const routes = new Map<string, ServedMethod>();
  for (const { service, handlers } of options.services) {
    for (const method of service.methods) {
      const handler = handlers[method.localName];
      const isServed = method.methodKind === 'unary' || method.methodKind === 'server_streaming';
      if (!isServed || handler === undefined) continue;
      const path = `/${service.typeName}/${method.name}`;
      routes.set(path, { method, respond: universal(method, handler, path, options) });
    }
  }
  return routes;
}

function universal(
  method: DescMethod,
  handler: AnyHandler,
  path: string,
  options: HttpCallsOptions,
): UniversalHandler {
  const router = createConnectRouter({
    ...{ grpc: false, acceptCompression: [compressionGzip], maxTimeoutMs: timeoutMsMax },
  });
  const implement = method.methodKind === 'unary' ? unary : serverStreaming;
  router.rpc(method, implement(handler, path, options) as never);
  const [made] = router.handlers;
  if (made === undefined) throw new Error(`${path} has no handler`);
  return made;
}

interface RunningCall {
  readonly request: unknown;
  readonly admitted: AdmittedCall;
  /** Aborted when the call is over, for every cause. */
  readonly signal: AbortSignal;
  /** The error for the library in place of the thrown one. */
  readonly toCallerError: (error: unknown) => ConnectError;
}

/** The call that the library runs; throws the refusal. */
function running(own: HandlerContext, path: string, parts: FailureParts): RunningCall {
  const outcome = own.values.get(outcomeKey);
  if (outcome === undefined) throw new Error(`${path} has come past its reading`);
  if (outcome.kind === 'refused') throw connectError(outcome.failure);
  const { request, admitted } = outcome;
  const { scope } = admitted;
  // Its deadline has passed, or its caller has gone.
  own.signal.addEventListener('abort', () => scope.abort(), { once: true });
  const toCallerError = (error: unknown): ConnectError => {
    if (error instanceof ConnectError) return error;
    return connectError(failureForCaller(admitted.refusal(error), path, parts));
  };
  return { request, admitted, signal: scope.context.signal, toCallerError };
}

/** Why a call ends whose signal was aborted. */
function endOf({ signal }: HandlerContext): unknown {
  return signal.aborted && signal.reason instanceof ConnectError ? signal.reason : serverClosing();
}

function unary(handler: AnyHandler, path: string, parts: FailureParts) {
  return async (_empty: unknown, own: HandlerContext): Promise<unknown> => {
    const { request, admitted, signal, toCallerError } = running(own, path, parts);
    try {
      const answering = Promise.resolve(handler(request as never, admitted.scope.context));
      const answer = await unlessAborted(answering, signal);
      if (answer === undefined) throw endOf(own);
      return answer;
    } catch (error) {
      throw toCallerError(error);
    } finally {
      admitted.leave();
    }
  };
}

function serverStreaming(handler: AnyHandler, path: string, parts: FailureParts) {
  return async function* (_empty: unknown, own: HandlerContext) {
    const { request, admitted, signal, toCallerError } = running(own, path, parts);
    try {
      const responses = handler(request as never, admitted.scope.context);
      const isWhole = yield* untilAborted(responses as AsyncIterable<unknown>, signal);
      if (!isWhole) throw endOf(own);
    } catch (error) {
      throw toCallerError(error);
    } finally {
      admitted.leave();
    }
  };
}
