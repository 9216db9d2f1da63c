/**
 * HTTP/1.1 on connections that the listener has admitted: Node's server, with bounds of our own
 * in place of its timers, which need a listening socket and a clock of their own.
 *
 * Invariants:
 * 1. A connection has one exchange at a time. Pipelined requests wait, so no answers pile up behind
 *    a slow one. Too many waiting requests end the connection.
 * 2. A connection that does not complete a head in time is closed. So is an idle one.
 * 3. A bounded rest of an unwanted body is discarded, so that its sender reads the answer. Then the
 *    connection is closed.
 * 4. An exchange ends when the system reports that its peer is gone.
 * 5. Requests behind the last answer of a connection are not carried out: their sender would not
 *    learn the result.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { Cancel, Clock } from '@rackwright/platform';
import type { HttpListener } from '../server/http-parts.ts';
import type { RpcLimits } from '../wire/limits.ts';

export type HttpLimits = Pick<
  RpcLimits,
  'connectionIdleMs' | 'firstMessageMs' | 'keepaliveAfterMs' | 'closeGraceMs'
>;

/** One request and its answer, which is over when `response` closes. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TLSSocket;
  /** Asks for the body, if its sender waits for that (`Expect: 100-continue`). */
  readonly askForBody: () => void;
}

const headBytesMax = 16 * 1024;
/** Requests of one connection that may wait for the one before them. */
const waitingMax = 4;
/** Bytes of a body that are discarded behind its answer. */
const restBytesMax = 1024 * 1024;
/** It is looked at in these intervals, so often at most. */
const restCheckMs = 100;
const restChecks = 20;

/** `serve` answers one exchange. It must not throw: an exchange without an answer is cut. */
export function openHttpListener(
  serve: (exchange: Exchange) => Promise<void>,
  limits: HttpLimits,
  clock: Clock,
): HttpListener {
  const open = new Map<object, Connection>();
  const server = createServer({ maxHeaderSize: headBytesMax, keepAliveTimeout: 0 });
  withoutTimers(server);
  const arrive = (
    request: IncomingMessage,
    response: ServerResponse,
    { isAsked }: { readonly isAsked: boolean },
  ): void => {
    const connection = open.get(request.socket);
    if (connection === undefined) request.socket.destroy();
    else connection.arrive(request, response, { isAsked });
  };
  server.on('request', (request, response) => arrive(request, response, { isAsked: false }));
  server.on('checkContinue', (request, response) => arrive(request, response, { isAsked: true }));
  // Other expectations may be passed over (RFC 9110 §10.1.1). Node would answer them by itself,
  // past our bounds.
  server.on('checkExpectation', (request, response) =>
    arrive(request, response, { isAsked: false }),
  );
  return {
    take: (socket) => {
      const connection = new Connection(socket, { serve, limits, clock });
      open.set(socket, connection);
      socket.once('close', () => {
        open.delete(socket);
        connection.gone();
      });
      server.emit('connection', socket);
    },
    get connections() {
      return open.size;
    },
    close: () => closeAll([...open.values()], open, limits, clock),
  };
}

function withoutTimers(server: Server): void {
  server.headersTimeout = 0;
  server.requestTimeout = 0;
  server.timeout = 0;
}

function closeAll(
  connections: readonly Connection[],
  open: ReadonlyMap<object, Connection>,
  { closeGraceMs }: HttpLimits,
  clock: Clock,
): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(closeGraceMs, () => {
      for (const connection of open.values()) connection.cut();
      resolve();
    });
    let left = connections.length + 1;
    const over = (): void => {
      left -= 1;
      if (left > 0) return;
      cancel();
      resolve();
    };
    for (const connection of connections) connection.end(over);
    over();
  });
}

/**
 * Invariant 5. Node gives the connection to one response after the other, and to none behind a
 * response that ends it. Node itself ends it after a request without a host, or one of HTTP/1.0
 * without a length.
 */
function mayAnswer({ response }: Exchange): boolean {
  return response.socket !== null;
}

interface ConnectionParts {
  readonly serve: (exchange: Exchange) => Promise<void>;
  readonly limits: HttpLimits;
  readonly clock: Clock;
}

class Connection {
  readonly #socket: TLSSocket;
  readonly #parts: ConnectionParts;
  readonly #waiting: Exchange[] = [];
  #isBusy = false;
  #isEnding = false;
  #cancel: Cancel;

  constructor(socket: TLSSocket, parts: ConnectionParts) {
    this.#socket = socket;
    this.#parts = parts;
    socket.setKeepAlive(true, parts.limits.keepaliveAfterMs);
    this.#cancel = parts.clock.after(parts.limits.firstMessageMs, () => this.cut());
  }

  arrive(
    request: IncomingMessage,
    response: ServerResponse,
    { isAsked }: { readonly isAsked: boolean },
  ): void {
    const askForBody = isAsked ? () => response.writeContinue() : () => undefined;
    const exchange = { request, response, socket: this.#socket, askForBody };
    if (this.#isBusy) {
      if (this.#waiting.push(exchange) > waitingMax) this.cut();
    } else if (mayAnswer(exchange)) {
      this.#cancel();
      this.#begin(exchange);
    }
  }

  #begin(exchange: Exchange): void {
    this.#isBusy = true;
    const { request, response } = exchange;
    if (this.#isEnding) response.shouldKeepAlive = false;
    response.once('close', () => this.#next(request));
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    void this.#parts.serve(exchange).finally(() => {
      if (!response.writableEnded) this.cut();
    });
  }

  #next(request: IncomingMessage): void {
    if (this.#socket.destroyed) return;
    if (!request.complete) this.#passOver(request);
    this.#isBusy = false;
    if (this.#isEnding) {
      this.#socket.destroySoon();
      return;
    }
    const { connectionIdleMs, closeGraceMs } = this.#parts.limits;
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#rest(connectionIdleMs);
    else if (mayAnswer(waiting)) this.#begin(waiting);
    else this.#rest(closeGraceMs);
  }

  /** Invariant 3. Node passes it over by itself; this bounds how much, and for how long. */
  #passOver(
    request: IncomingMessage,
    before = this.#socket.bytesRead,
    checksLeft = restChecks,
  ): void {
    if (request.complete || this.#socket.destroyed) return;
    if (checksLeft === 0 || this.#socket.bytesRead - before > restBytesMax) return this.cut();
    this.#parts.clock.after(restCheckMs, () => this.#passOver(request, before, checksLeft - 1));
  }

  #rest(afterMs: number): void {
    this.#cancel = this.#parts.clock.after(afterMs, () => this.cut());
  }

  end(over: () => void): void {
    this.#isEnding = true;
    if (this.#socket.destroyed) return over();
    this.#socket.once('close', over);
    if (!this.#isBusy) this.cut();
  }

  gone(): void {
    this.#cancel();
    this.#waiting.length = 0;
  }

  cut(): void {
    this.#socket.destroy();
  }
}
