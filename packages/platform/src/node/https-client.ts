/**
 * HTTPS to devices that sign their own certificates.
 *
 * C1 The certificate is compared before the socket is handed to HTTP: with another one than the
 *    pinned one not a byte of a request leaves this machine. Node's own checks (name, issuer,
 *    dates) are off; sessions are not resumed, so that every connection shows its certificate.
 * C2 One connection per peer, kept between requests. A device that closes it while it is idle costs
 *    a GET one more attempt and nothing else; other methods are never sent twice.
 * C3 A name never leads to an internal address, for any answer of the resolver; a literal address
 *    is used as it is.
 * C4 Time, headers and body are bounded; an outcome never carries what was sent.
 */
import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import type {
  HttpsLimits,
  HttpsOutcome,
  HttpsPeer,
  HttpsRequest,
  HttpsTarget,
} from '../https-client.ts';
import { AddressRefused, guardedLookup } from './guarded-lookup.ts';

/** See `HttpClient.peer`. */
export function openPeer(target: HttpsTarget, limits: HttpsLimits): HttpsPeer {
  return new NodeHttpsPeer(target, limits);
}

/** Idle keep-alive connections are closed after this. */
const idleTimeoutMs = 30_000;

class NodeHttpsPeer implements HttpsPeer {
  readonly #target: HttpsTarget;
  readonly #limits: HttpsLimits;
  readonly #agent: PinningAgent;

  constructor(target: HttpsTarget, limits: HttpsLimits) {
    this.#target = target;
    this.#limits = limits;
    this.#agent = new PinningAgent(target, limits);
  }

  async request(request: HttpsRequest, signal?: AbortSignal): Promise<HttpsOutcome> {
    const { outcome, wasIdle } = await this.#send(request, signal);
    const again = outcome.kind === 'broken' && wasIdle && request.method === 'GET';
    return again ? (await this.#send(request, signal)).outcome : outcome;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #send(
    { method, path, headers, body }: HttpsRequest,
    signal: AbortSignal | undefined,
  ): Promise<{ outcome: HttpsOutcome; wasIdle: boolean }> {
    if (signal?.aborted === true) return { outcome: { kind: 'cancelled' }, wasIdle: false };
    const { requestTimeoutMs, headerBytesMax } = this.#limits;
    const deadline = AbortSignal.timeout(requestTimeoutMs);
    const ends = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    const bytes = body === undefined ? undefined : Buffer.from(body);
    const length = bytes === undefined ? {} : { 'content-length': String(bytes.length) };
    const sent = httpsRequest({
      agent: this.#agent,
      host: this.#target.address,
      port: this.#target.port,
      method,
      path,
      headers: { ...headers, ...length },
      maxHeaderSize: headerBytesMax,
      signal: ends,
    });
    try {
      const answer = await answerOf(sent, bytes);
      const outcome = await this.#read(answer);
      return { outcome, wasIdle: false };
    } catch (error) {
      const outcome = this.#outcomeOf(error, sent, signal, deadline);
      return { outcome, wasIdle: sent.reusedSocket };
    } finally {
      // The rest of an abandoned answer must not meet the next request.
      if (!sent.destroyed) sent.destroy();
    }
  }

  async #read(answer: IncomingMessage): Promise<HttpsOutcome> {
    const { bodyBytesMax } = this.#limits;
    // Before the end: then the socket is the agent's again.
    const certificateSha256 = this.#agent.shownOn(answer.socket);
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of answer as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > bodyBytesMax) {
        return { kind: 'noHttp', message: `the answer is longer than ${bodyBytesMax} bytes` };
      }
      parts.push(part);
    }
    if (!answer.complete) throw new Error('the connection ended within the answer');
    const headers: Record<string, string> = {};
    for (const [name, values] of Object.entries(answer.headersDistinct)) {
      if (values !== undefined) headers[name] = values.join(', ');
    }
    const { statusCode: status = 0 } = answer;
    return { kind: 'answered', status, headers, body: Buffer.concat(parts), certificateSha256 };
  }

  #outcomeOf(
    error: unknown,
    sent: ClientRequest,
    signal: AbortSignal | undefined,
    deadline: AbortSignal,
  ): HttpsOutcome {
    if (signal?.aborted === true) return { kind: 'cancelled' };
    // Handed to the socket, which exists only with an accepted certificate.
    const mayHaveArrived = sent.socket !== null && sent.socket !== undefined;
    if (deadline.aborted) {
      const seconds = this.#limits.requestTimeoutMs / 1_000;
      return { kind: 'timedOut', message: `no whole answer in ${seconds} s`, mayHaveArrived };
    }
    if (error instanceof ConnectFailure) return error.outcome;
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code.startsWith('HPE_')) return { kind: 'noHttp', message };
    return { kind: 'broken', message: messageOf(code, message), mayHaveArrived };
  }
}

function answerOf(sent: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Why there is no connection to send anything on. */
class ConnectFailure extends Error {
  readonly outcome: HttpsOutcome;

  constructor(outcome: HttpsOutcome) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

type Handover = (error: Error | null, stream: Duplex) => void;

/** Node's type wants a stream beside an error, too. */
const noSocket = undefined as never;

/** C1, C2: hands out sockets whose certificate has been compared. */
class PinningAgent extends Agent {
  readonly #target: HttpsTarget;
  readonly #limits: HttpsLimits;
  readonly #shown = new WeakMap<Duplex, string>();
  readonly #connecting = new Set<TLSSocket>();

  constructor(target: HttpsTarget, limits: HttpsLimits) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: idleTimeoutMs });
    this.#target = target;
    this.#limits = limits;
  }

  /** The fingerprint of the certificate behind `socket`. */
  shownOn(socket: Duplex): string {
    return this.#shown.get(socket) ?? '';
  }

  override destroy(): void {
    for (const socket of this.#connecting) socket.destroy();
    super.destroy();
  }

  override createConnection(_options: unknown, callback?: Handover): undefined {
    const { connectTimeoutMs } = this.#limits;
    const socket = this.#connect();
    this.#connecting.add(socket);
    const end = (): void => {
      this.#connecting.delete(socket);
      socket.off('error', onError).off('close', onClose).setTimeout(0, onTimeout);
    };
    const fail = (outcome: HttpsOutcome): void => {
      end();
      // Errors of a socket while it is being destroyed are ignored.
      socket.on('error', () => {}).destroy();
      callback?.(new ConnectFailure(outcome), noSocket);
    };
    let isConnected = false;
    const onTimeout = (): void => {
      const message = `no connection in ${connectTimeoutMs / 1_000} s`;
      fail({ kind: 'timedOut', message, mayHaveArrived: false });
    };
    socket.setTimeout(connectTimeoutMs, onTimeout);
    socket.on('connect', () => {
      isConnected = true;
    });
    const onError = (error: Error): void => fail(connectOutcome(error, isConnected));
    const onClose = (): void => {
      const message = 'the connection was closed before TLS was up';
      fail({ kind: 'broken', message, mayHaveArrived: false });
    };
    socket.on('error', onError).on('close', onClose);
    socket.on('secureConnect', () => {
      const refused = this.#judge(socket);
      if (refused !== undefined) {
        fail(refused);
        return;
      }
      end();
      callback?.(null, socket);
    });
    return undefined;
  }

  #connect(): TLSSocket {
    const { address, port } = this.#target;
    // A name is sent to the server (SNI); an address must not be (RFC 6066 §3).
    const isName = isIP(address) === 0;
    const servername = isName ? address : '';
    const guard = isName ? { lookup: guardedLookup(port, []) } : {};
    return connect({ host: address, port, servername, rejectUnauthorized: false, ...guard });
  }

  /** C1. */
  #judge(socket: TLSSocket): HttpsOutcome | undefined {
    const der = socket.getPeerX509Certificate()?.raw;
    if (der === undefined) return { kind: 'noTls', message: 'no certificate was shown' };
    const shown = createHash('sha256').update(der).digest('hex');
    const pinned = this.#target.certificateSha256;
    if (pinned !== undefined && pinned !== shown) {
      return { kind: 'certificateRefused', pinned, shown };
    }
    this.#shown.set(socket, shown);
    return undefined;
  }
}

/** The meaning of an error before TLS was up. */
function connectOutcome(error: NodeJS.ErrnoException, isConnected: boolean): HttpsOutcome {
  const { code = '', message } = error;
  if (error instanceof AddressRefused) return { kind: 'unknownName', message };
  if (code === 'ENOTFOUND' || code === 'EAI_NONAME') return { kind: 'unknownName', message };
  const isTls = code.startsWith('ERR_SSL_') || code === 'EPROTO';
  if (isConnected && isTls) return { kind: 'noTls', message: messageOf(code, message) };
  return { kind: 'broken', message: messageOf(code, message), mayHaveArrived: false };
}

/** Node's messages without the lines of OpenSSL around the reason. */
function messageOf(code: string, message: string): string {
  const reason = /:([^:\n]+):[^:\n]*:\d+:?\s*$/.exec(message.trim())?.[1];
  if (code.startsWith('ERR_SSL_')) return reason?.trim() ?? code;
  return message.split('\n')[0] ?? code;
}
