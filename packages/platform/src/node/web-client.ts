/**
 * HTTP and HTTPS of this machine, by URL.
 *
 * W1 A certificate is trusted when an authority of this machine (or one that comes with Node) has
 *    signed it for the name of the URL. Nothing is sent before.
 * W2 Every connection serves one request, so that the rest of an answer never reaches another
 *    request.
 * W3 Bounds exist for the size of the headers, the wait for them, every later pause, and the
 *    slowest rate of a body.
 * W4 A guarded client connects to an internal address only where the request lists it: the address
 *    of the connection is judged, for every name and spelling.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, connect as tcpConnect } from 'node:net';
import { connect, createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { mayBeReached } from '../internal-address.ts';
import {
  type WebAnswer,
  WebBroken,
  type WebClient,
  type WebFloor,
  type WebLimits,
  type WebOutcome,
  type WebRequest,
  WebTooSlow,
} from '../web-client.ts';
import { AddressRefused, guardedLookup, refusedText } from './guarded-lookup.ts';
import { readInto } from './read-into.ts';

/** Sets of authorities that are kept; the most frequent one has its own. */
const contextsMax = 16;

/** See `nodeWebClient`. */
export function openWebClient(caPem: readonly string[] = []): WebClient {
  return clientOf(caPem, { isGuarded: false });
}

/** See `guardedWebClient`. */
export function openGuardedWebClient(): WebClient {
  return clientOf([], { isGuarded: true });
}

function clientOf(
  caPem: readonly string[],
  { isGuarded }: { readonly isGuarded: boolean },
): WebClient {
  const contexts = new Map<string, SecureContext>();
  const trust = (own: string): SecureContext => {
    // Hundreds of certificates: read once, and only when they are needed.
    const known = contexts.get(own);
    if (known !== undefined) return known;
    const ca = [...getCACertificates('default'), ...getCACertificates('system'), ...caPem];
    const made = createSecureContext({ ca: own === '' ? ca : [...ca, own] });
    const [oldest] = contexts.keys();
    if (contexts.size >= contextsMax && oldest !== undefined) contexts.delete(oldest);
    contexts.set(own, made);
    return made;
  };
  return { send: (request, limits, signal) => send(request, limits, signal, { trust, isGuarded }) };
}

interface ConnectionRules {
  readonly trust: (own: string) => SecureContext;
  readonly isGuarded: boolean;
}

async function send(
  request: WebRequest,
  limits: WebLimits,
  signal: AbortSignal | undefined,
  rules: ConnectionRules,
): Promise<WebOutcome> {
  const url = URL.parse(request.url);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || hasUser(url)) {
    return { kind: 'noHttp', message: 'this is no URL of HTTP or HTTPS without a user' };
  }
  if (isAborted(signal)) return { kind: 'cancelled' };
  const { host, port } = targetOf(url);
  // A literal address needs no look-up, so it is judged here.
  if (rules.isGuarded && isIP(host) !== 0 && !mayBeReached(host, port, request.internal ?? [])) {
    return { kind: 'forbidden', message: refusedText(host, host) };
  }
  const over = new AbortController();
  const stop = (): void => over.abort();
  signal?.addEventListener('abort', stop, { once: true });
  const end = (): void => signal?.removeEventListener('abort', stop);
  const late = setTimeout(stop, limits.answerTimeoutMs);
  let sent: ClientRequest;
  try {
    sent = start(url, request, limits, over.signal, rules);
  } catch (error) {
    clearTimeout(late);
    end();
    const { message } = error as Error;
    return { kind: 'untrusted', message: `its authorities cannot be read: ${message}` };
  }
  try {
    const answer = await answerOf(sent, request.body);
    clearTimeout(late);
    return answered(sent, answer, limits, end);
  } catch (error) {
    clearTimeout(late);
    end();
    sent.destroy();
    if (isAborted(signal)) return { kind: 'cancelled' };
    return outcomeOf(error as NodeJS.ErrnoException, sent, over.signal.aborted, limits);
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** The target of the connection: an address without brackets, or a name. */
function targetOf({ hostname, port, protocol }: URL): { readonly host: string; port: number } {
  const usual = protocol === 'https:' ? 443 : 80;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port) };
}

function hasUser({ username, password }: URL): boolean {
  return username !== '' || password !== '';
}

function start(
  url: URL,
  { method, headers, body, caPem = '', internal = [] }: WebRequest,
  { headerBytesMax }: WebLimits,
  signal: AbortSignal,
  { trust, isGuarded }: ConnectionRules,
): ClientRequest {
  const { host, port } = targetOf(url);
  const guard = isGuarded ? { lookup: guardedLookup(port, internal) } : {};
  const length = body === undefined ? {} : { 'content-length': String(body.length) };
  const options = {
    method,
    headers: { ...headers, ...length },
    maxHeaderSize: headerBytesMax,
    signal,
  };
  // Instead of an agent: without one, too, the connection serves this request alone (W2).
  if (url.protocol === 'http:') {
    const createConnection = () =>
      readInto((onread) => tcpConnect({ host, port, onread, ...guard }));
    return httpRequest(url, { ...options, createConnection });
  }
  // A name is sent to the server (SNI); an address must not be (RFC 6066 §3).
  const servername = isIP(host) === 0 ? host : '';
  const secureContext = trust(caPem);
  const createConnection = () =>
    readInto((onread) => {
      // An option of Node that its types leave out.
      const to = { host, port, servername, secureContext, onread, ...guard };
      return connect(to);
    });
  return httpsRequest(url, { ...options, createConnection });
}

function answerOf(sent: ClientRequest, body: Uint8Array | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on('response', resolve);
    // This listener stays: an error of a connection after its answer must not end the process.
    sent.on('error', reject);
    sent.end(body);
  });
}

function answered(
  sent: ClientRequest,
  answer: IncomingMessage,
  { silenceMs, floor }: WebLimits,
  end: () => void,
): WebAnswer {
  const headers: Record<string, string> = {};
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    if (values !== undefined) headers[name] = values.join(', ');
  }
  answer.on('close', end);
  answer.on('error', () => {});
  sent.setTimeout(silenceMs, () => {
    answer.destroy(new WebBroken(`nothing came for ${silenceMs / 1_000} s`));
  });
  if (floor !== undefined) keepAbove(floor, answer);
  const { statusCode: status = 0 } = answer;
  const close = (): void => void sent.destroy();
  return { kind: 'answered', status, headers, body: bodyOf(answer), close };
}

/** A slow reader does not count as a slow sender while it reads that much itself. */
function keepAbove({ bytes, everyMs }: WebFloor, answer: IncomingMessage): void {
  const { socket } = answer;
  let before = socket.bytesRead;
  const check = setInterval(() => {
    if (answer.complete) return;
    const now = socket.bytesRead;
    if (now - before < bytes) {
      const much = Number.isFinite(bytes) ? `less than ${bytes} bytes` : 'the answer not whole';
      answer.destroy(new WebTooSlow(`${much} in ${everyMs / 1_000} s`));
    }
    before = now;
  }, everyMs);
  answer.once('close', () => clearInterval(check));
}

async function* bodyOf(answer: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of answer as AsyncIterable<Buffer>) yield part;
  } catch (error) {
    if (error instanceof WebBroken) throw error;
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new WebBroken(`the connection ended within the answer: ${code || message}`);
  }
  if (!answer.complete) throw new WebBroken('the connection ended within the answer');
}

/** Codes of OpenSSL's and Node's judgement of a certificate. */
const distrust = /^(ERR_TLS_CERT_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|HOSTNAME_)/;

function outcomeOf(
  error: NodeJS.ErrnoException,
  sent: ClientRequest,
  isLate: boolean,
  { answerTimeoutMs }: WebLimits,
): WebOutcome {
  // Before TLS is up nothing is sent.
  const { socket } = sent;
  const isSecured = !(socket !== null && 'authorized' in socket) || socket.authorized === true;
  const mayHaveArrived = socket !== null && !socket.connecting && isSecured;
  if (error instanceof AddressRefused) return { kind: 'forbidden', message: error.message };
  if (isLate) {
    const message = `no answer in ${answerTimeoutMs / 1_000} s`;
    return { kind: 'unreachable', message, mayHaveArrived };
  }
  const { code = '', message } = error;
  const text = message.split('\n')[0] ?? code;
  if (distrust.test(code)) return { kind: 'untrusted', message: text };
  if (code.startsWith('HPE_') || code.startsWith('ERR_SSL_') || code === 'EPROTO') {
    return { kind: 'noHttp', message: code.startsWith('HPE_') ? text : tlsText(code, text) };
  }
  const refused = code === 'ENOTFOUND' || code === 'ECONNREFUSED';
  return { kind: 'unreachable', message: text, mayHaveArrived: mayHaveArrived && !refused };
}

/** TLS errors for an answer that is no TLS. */
const noTls = /^(wrong version number|packet length too long|http request)$/;

/** OpenSSL's reason alone, out of a line with the places of its sources. */
function tlsText(code: string, text: string): string {
  const tlsReason = /:SSL routines:[^:]*:([^:]+)/.exec(text)?.[1];
  const reason =
    tlsReason ??
    code
      .replace(/^ERR_SSL_/, '')
      .replaceAll('_', ' ')
      .toLowerCase();
  return noTls.test(reason) ? 'it does not speak TLS' : `TLS is refused: ${reason}`;
}
