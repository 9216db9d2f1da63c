/**
 * Plain HTTP of this machine, for the boot path: requests whose bodies are not used, answers from
 * memory or from files.
 *
 * H1 A request that has a body closes its connection. The body of a successful one is discarded, at
 *    most `bodyBytesMax` of it, so that its sender gets to read the answer; of others nothing is
 *    read.
 * H2 Headers, connections and silence are bounded as `HttpListen` says; Node's parser refuses
 *    malformed requests before any handler sees them.
 * H3 A file is opened before the status is sent, so one that is gone is a 404 and not half an
 *    answer. One that turns out shorter than promised breaks the connection: a client must not take
 *    a part for the whole.
 * H4 A handler that throws costs its request, not the server.
 * H5 The health check uses a connection within this process, which is served like the others and
 *    takes the place of none.
 * H6 One answer of a connection is under way at a time, for any number of requests; beyond a few
 *    requests it is read no further (`request-pacing.ts`). So a client's cost, in files and in
 *    memory, is bounded by its connections.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { isAbsent } from '../absent.ts';
import type { FileSlice, HttpListen, HttpRequest, HttpResponse, HttpServer } from '../http.ts';
import { markHandled } from '../rejections.ts';
import { type CallerConnection, Callers } from './callers.ts';
import { FilePieces, type KeptBytes, type OpenFile, type Piece } from './file-pieces.ts';
import { paceRequests } from './request-pacing.ts';

/** A request, its pending answer, and the source of file bytes. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly pieces: FilePieces;
  readonly mayAsk: MayAsk;
  /** See `HttpListen.onFailure`. */
  readonly failed: (error: unknown) => void;
}

/** False when the host that it asks for has as many connections as it may have. */
type MayAsk = (request: IncomingMessage) => boolean;

/** Node's handler of a connection. */
type Speak = (connection: Duplex) => void;
type Handle = (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;

/** How long a file is kept after the last request for it. */
const keptMs = 60_000;
/** The body of a request: the keys of a host and its names are some thousand bytes. */
const bodyBytesMax = 64 * 1024;
/**
 * Requests of one connection, behind the one that is being answered; others stay unread meanwhile.
 */
const waitingRequestsMax = 8;
/** The interval of Node's check for slow requests, milliseconds. */
const timeoutCheckMs = 1_000;

/** See `Http.listen`. */
export async function listen(options: HttpListen, handle: Handle): Promise<HttpServer> {
  const server = createServer({
    maxHeaderSize: options.headerBytesMax,
    headersTimeout: options.idleTimeoutMs,
    requestTimeout: options.idleTimeoutMs,
    keepAliveTimeout: options.idleTimeoutMs,
    connectionsCheckingInterval: timeoutCheckMs,
  });
  server.maxConnections = options.connectionsMax;
  server.setTimeout(options.idleTimeoutMs, (socket) => socket.destroy());
  server.on('clientError', refuseUnreadable);
  // Without these two Node drops the connection without a word.
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => refuse(socket, 405));
  const { connectionsPerAddressMax, connectionsPerHostMax = connectionsPerAddressMax } = options;
  const callers = new Callers({ ...options, connectionsPerHostMax });
  const mayAsk: MayAsk = ({ url = '', socket }) => {
    const host = options.hostOf?.(url);
    const caller = pipelines.get(socket)?.caller;
    return host === undefined || caller === undefined || callers.name(caller, host);
  };
  const pieces = new FilePieces({ keptBytesMax: options.keptFileBytesMax ?? 0, keptMs });
  const failed = (error: unknown): void => options.onFailure?.(error);
  const onRequest = (request: IncomingMessage, response: ServerResponse): void =>
    serve({ request, response, pieces, mayAsk, failed }, handle);
  server.on('checkExpectation', onRequest);
  server.on('request', onRequest);
  const speak = limitCallers(server, callers);
  server.listen({ host: options.address, port: options.port });
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  const problem = (timeoutMs: number) => problemOf(server, speak, timeoutMs);
  const end = async (): Promise<void> => {
    await close(server);
    pieces.close();
  };
  return { address, port, problem, close: end };
}

/** Admits connections up to the bound of their address. Returns the handler of admitted ones. */
function limitCallers(server: Server, callers: Callers): Speak {
  const inherent = server.listeners('connection');
  const speak: Speak = (connection) => {
    for (const listener of inherent) listener.call(server, connection);
  };
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const from = ownForm(socket.remoteAddress);
    // Without an address it is gone already.
    const caller = from === '' ? undefined : callers.admit(from);
    if (caller === undefined) {
      socket.destroy();
      return;
    }
    socket.once('close', () => callers.leave(caller));
    speak(socket);
    const pipeline: Pipeline = { unanswered: 0, answered: Promise.resolve(), caller };
    pipelines.set(socket, pipeline);
    const mayFeed = (): boolean => pipeline.unanswered <= waitingRequestsMax;
    pipeline.onAnswered = paceRequests(socket, mayFeed);
  });
  return speak;
}

/** H5. */
function problemOf(server: Server, speak: Speak, timeoutMs: number): Promise<string | undefined> {
  if (!server.listening) return Promise.resolve('HTTP does not listen any more');
  const [own, other] = duplexPair();
  return new Promise((resolve) => {
    const settle = (text?: string): void => {
      clearTimeout(timer);
      own.destroy();
      other.destroy();
      resolve(text);
    };
    const timer = setTimeout(() => settle(`HTTP: no answer within ${timeoutMs} ms`), timeoutMs);
    own.once('data', () => settle());
    own.once('end', () => settle('HTTP: the connection was closed'));
    for (const end of [own, other]) end.once('error', (cause) => settle(`HTTP: ${cause.message}`));
    speak(other);
    own.write('HEAD / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
  });
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

/** H2: a request that Node's parser could not read. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return refuse(socket, 431);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refuse(socket, 408);
    default:
      return refuse(socket, 400);
  }
}

function refuse(socket: Duplex, status: number): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const head = `HTTP/1.1 ${status} ${reasons[status] ?? ''}`;
  socket.end(`${head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/** The requests of a connection (H6). */
interface Pipeline {
  unanswered: number;
  /** Resolves when all of it is answered, or the client is gone. */
  answered: Promise<void>;
  /** Absent on the connection of H5, like the fields below. */
  readonly caller?: CallerConnection;
  /** Called after each answer. */
  onAnswered?: () => void;
}

const pipelines = new WeakMap<Duplex, Pipeline>();

/** Answers one request when those before it on its connection have been (H6). */
function serve(exchange: Exchange, handle: Handle): void {
  const { socket } = exchange.request;
  const pipeline = pipelines.get(socket) ?? { unanswered: 0, answered: Promise.resolve() };
  pipelines.set(socket, pipeline);
  pipeline.unanswered += 1;
  pipeline.answered = answerInOrder(exchange, handle, pipeline);
}

async function answerInOrder(
  exchange: Exchange,
  handle: Handle,
  pipeline: Pipeline,
): Promise<void> {
  await pipeline.answered;
  // A connection that was closed after an answer may have sent more requests.
  if (exchange.request.socket.writable) await answerWhole(exchange, handle);
  pipeline.unanswered -= 1;
  pipeline.onAnswered?.();
}

/** Resolves when the answer is the kernel's, or cannot be; never rejects (H4). */
async function answerWhole(exchange: Exchange, handle: Handle): Promise<void> {
  const { request, response } = exchange;
  const httpRequest = readRequest(request);
  if (hasBody(httpRequest)) response.shouldKeepAlive = false;
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  try {
    await answer(exchange, httpRequest, handle);
  } catch (error) {
    exchange.failed(error);
    if (response.headersSent) response.destroy();
    else response.writeHead(500, { connection: 'close', 'content-length': 0 }).end();
  }
  await closed;
}

async function answer(exchange: Exchange, httpRequest: HttpRequest, handle: Handle): Promise<void> {
  const { request, response } = exchange;
  if (!exchange.mayAsk(request)) {
    response.writeHead(429, { ...noBody, connection: 'close', 'retry-after': '2' }).end();
    return;
  }
  const decided = await handle(httpRequest);
  const { body, onEnd } = decided;
  if (onEnd !== undefined) response.once('close', () => onEnd(response.writableFinished));
  if (hasBody(httpRequest) && decided.status < 400 && !(await isDrained(request))) {
    response.writeHead(413, { connection: 'close', 'content-length': 0 }).end();
    return;
  }
  if (typeof body === 'object' && 'kind' in body) {
    // Nothing is lent to a client that has gone: its response emits no `close` any more.
    const kept = response.destroyed ? undefined : keptOf(exchange.pieces, body);
    if (kept === undefined) await sendFile(exchange, decided, body);
    else sendKept(exchange, decided, kept);
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const length = bytes === undefined ? {} : { 'content-length': String(bytes.length) };
  response.writeHead(decided.status, { ...length, ...decided.headers });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

function keptOf(pieces: FilePieces, slice: FileSlice): KeptBytes | undefined {
  const { path, start, end, version, readable } = slice;
  if (version === undefined || readable !== undefined) return undefined;
  return pieces.lend(path, version, start, end + 1);
}

/** Hands the socket all of it at once, so that the kernel takes it by as few calls as it can. */
function sendKept(
  { request, response }: Exchange,
  decided: HttpResponse,
  { pieces, giveBack }: KeptBytes,
): void {
  response.once('close', giveBack);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(decided.status, { 'content-length': String(length), ...decided.headers });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  for (const piece of pieces.slice(0, -1)) response.write(piece);
  response.end(pieces.at(-1));
}

/** H3. */
async function sendFile(
  { request, response, pieces, failed }: Exchange,
  decided: HttpResponse,
  slice: FileSlice,
): Promise<void> {
  let file: OpenFile;
  try {
    file = await pieces.open(slice.path, slice.version);
  } catch (error) {
    if (!isAbsent(error)) failed(error);
    // One on its way may have another name by now.
    if (slice.readable !== undefined) response.writeHead(503, { ...noBody, 'retry-after': '1' });
    else response.writeHead(404, noBody);
    response.end();
    return;
  }
  const length = slice.end - slice.start + 1;
  try {
    response.writeHead(decided.status, { 'content-length': String(length), ...decided.headers });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    await sendSlice(response, file, slice);
    response.end();
  } catch (error) {
    // A client that has gone causes errors of its own: that of a write comes when its connection is
    // destroyed, before the response is.
    if (!response.destroyed && !request.socket.destroyed) failed(error);
    response.destroy();
  } finally {
    await file.close();
  }
}

/**
 * Reads a piece while the one before is sent. Rejects when the file is shorter, or the client is
 * gone.
 */
async function sendSlice(
  response: ServerResponse,
  file: OpenFile,
  { start, end, readable }: FileSlice,
): Promise<void> {
  const wait = readable === undefined ? undefined : untilGone(response, readable);
  let sent: Promise<void> = Promise.resolve();
  let until = readable === undefined ? end + 1 : start;
  for (let at = start; at <= end; ) {
    if (at >= until) until = Math.min(end + 1, (await wait?.(at)) ?? end + 1);
    const piece = await file.piece(at, until - at);
    await sent;
    at += piece.bytes.length;
    sent = written(response, piece);
    markHandled(sent);
  }
  await sent;
}

/** Waits for a file that is being fetched no longer than there is a client. */
function untilGone(response: ServerResponse, readable: NonNullable<FileSlice['readable']>) {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return (at: number): Promise<number> => readable(at, gone.signal);
}

/** Resolves when the bytes are the kernel's. */
function written(response: ServerResponse, { bytes, done }: Piece): Promise<void> {
  return new Promise((resolve, reject) => {
    response.once('close', reject);
    response.write(bytes, (error) => {
      response.off('close', reject);
      done();
      if (error instanceof Error) reject(error);
      else resolve();
    });
  });
}

function readRequest({ method = '', url, rawHeaders, socket }: IncomingMessage): HttpRequest {
  // Without a prototype: a client may name a header as it likes.
  const headers: Record<string, string> = Object.create(null);
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    const value = rawHeaders[at + 1] ?? '';
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return {
    method,
    target: url ?? '',
    remoteAddress: ownForm(socket.remoteAddress),
    localAddress: ownForm(socket.localAddress),
    headers,
  };
}

/** A socket for IPv6 and IPv4 shows an IPv4 address as one of IPv6 (RFC 4291 §2.5.5.2). */
function ownForm(address = ''): string {
  return address.startsWith(':') ? address.replace(/^::ffff:(?=[\d.]+$)/i, '') : address;
}

const noBody = { 'content-length': 0 } as const;

/**
 * H1. False when it is longer than is taken, or its client has gone within it. One that never ends
 * is cut off as silence is.
 */
async function isDrained(request: IncomingMessage): Promise<boolean> {
  let bytes = 0;
  try {
    for await (const piece of request) {
      bytes += (piece as Uint8Array).length;
      if (bytes > bodyBytesMax) return false;
    }
  } catch (error) {
    if (request.socket.destroyed) return false;
    throw error;
  }
  return true;
}

function hasBody({ headers }: HttpRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== '0');
}
