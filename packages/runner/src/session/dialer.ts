/**
 * The connection to the agent: gRPC over TLS to exactly the certificate whose SHA-256 is on the
 * kernel command line. A plain probe fetches the certificate; it is then the only root of the real
 * connection, and the verified name is the one that it carries.
 */
import { X509Certificate } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import * as runner from '@rackwright/messages/runner';
import type { Clock } from '@rackwright/platform';
import { connect, createClient, fetchPinnedCertificate, sessionKeepalive } from '@rackwright/rpc';
import type { OpenExchange } from './exchange.ts';

/** One open stream to the agent. */
export interface AgentConnection {
  /** Ends or throws when the stream is over. */
  readonly messages: AsyncIterable<runner.SessionResponse>;
  send(message: runner.SessionRequest['message']): void;
  /** Messages that wait to be sent, where that is known. */
  waiting?(): number;
  /** Bytes there and back; absent: none can be exchanged. */
  readonly exchange?: OpenExchange;
  close(): void;
}

export interface AgentDialer {
  /** Rejects when there is no agent, or another one. */
  dial(): Promise<AgentConnection>;
}

export interface AgentAddress {
  readonly host: string;
  readonly port: number;
  /** SHA-256 of the agent's certificate (DER), lower-case hex. */
  readonly fingerprint: string;
}

const probeTimeoutMs = 10_000;
/** An exchange of bytes that takes longer is broken. */
const exchangeMsMax = 300_000;
/** Messages that may wait for a slow agent; more end the connection. */
const outgoingMessagesMax = 1024;

export function grpcDialer(address: AgentAddress, clock: Clock): AgentDialer {
  return {
    dial: async () => {
      const { host, port, fingerprint } = address;
      const pem = await fetchPinnedCertificate({
        host,
        port,
        sha256: fingerprint,
        timeoutMs: probeTimeoutMs,
        clock,
      });
      const name = nameIn(pem);
      const target = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
      const channel = connect({
        target,
        caPem: pem,
        limits: sessionKeepalive,
        ...(name === undefined ? {} : { serverName: name }),
      });
      const over = new AbortController();
      const outgoing = new Outgoing(() => over.abort());
      const client = createClient(runner.RunnerService, channel);
      const messages = client.session(outgoing, { signal: over.signal });
      return {
        messages,
        send: (message) => outgoing.push({ message }),
        waiting: () => outgoing.length,
        exchange: (requests, signal) =>
          client.exchange(requests, { signal, deadlineMs: clock.nowMs() + exchangeMsMax }),
        close: () => {
          outgoing.end();
          over.abort();
          channel.close();
        },
      };
    },
  };
}

/** The first DNS name in the certificate; undefined leaves the address to be checked. */
function nameIn(pem: string): string | undefined {
  const names = new X509Certificate(pem).subjectAltName ?? '';
  return /(?:^|, )DNS:([^,]+)/.exec(names)?.[1];
}

type Request = MessageInitShape<typeof runner.SessionRequestSchema>;

/** Messages on their way out, in order; one reader. */
class Outgoing implements AsyncIterable<Request> {
  readonly #onOverflow: () => void;
  readonly #waiting: Request[] = [];
  #ended = false;
  #wake: () => void = () => {};

  constructor(onOverflow: () => void) {
    this.#onOverflow = onOverflow;
  }

  get length(): number {
    return this.#waiting.length;
  }

  push(request: Request): void {
    if (this.#ended) return;
    if (this.#waiting.length >= outgoingMessagesMax) {
      this.#ended = true;
      this.#onOverflow();
    } else {
      this.#waiting.push(request);
    }
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Request, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        yield next;
      } else if (this.#ended) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
