/**
 * The session's transport over gRPC with TLS and the agent's client certificate. A thin shell: one
 * stream for each dial, with the certificate that is current then.
 */
import { agent } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import type { ConnectOptions } from '@rackwright/rpc';
import type { SessionTransport, StreamConnection, TransportHandlers } from './transport.ts';

/** Messages that may wait for a slow stream; beyond, the stream is given up and dialled again. */
const queuedMax = 10_000;

/**
 * Dials the agents' port. `options` is called at each dial, because certificates are renewed
 * meanwhile.
 */
export function grpcTransport(options: () => ConnectOptions): SessionTransport {
  return { connect: (handlers) => openStream(options, handlers) };
}

function openStream(options: () => ConnectOptions, handlers: TransportHandlers): StreamConnection {
  const requests = new RequestQueue();
  const leaving = new AbortController();
  const close = (reason?: string) => {
    requests.end();
    leaving.abort(reason);
  };
  void carry(options, requests, leaving.signal, handlers);
  return {
    send: (message) => {
      if (!requests.push(message)) close('the stream does not take what is sent');
    },
    close: () => close(),
  };
}

async function carry(
  options: () => ConnectOptions,
  requests: RequestQueue,
  signal: AbortSignal,
  handlers: TransportHandlers,
): Promise<void> {
  let reason = 'the control plane ended the stream';
  try {
    // Nothing of gRPC is loaded before hosts are answered (program.ts); and handlers must not be
    // called before connect has returned.
    const { connect, createClient, sessionKeepalive } = await import('../rpc.ts');
    const channel = connect({ ...options(), limits: sessionKeepalive });
    try {
      const client = createClient(agent.AgentService, channel);
      for await (const response of client.session(requests, { signal })) {
        handlers.onMessage(response);
      }
    } finally {
      channel.close();
    }
  } catch (error) {
    reason = errorText(error);
  }
  requests.end();
  handlers.onClosed(typeof signal.reason === 'string' ? signal.reason : reason);
}

/** The messages to send, as the iterable that the client reads; bounded. */
class RequestQueue implements AsyncIterable<agent.SessionRequest> {
  readonly #waiting: agent.SessionRequest[] = [];
  #wake: () => void = () => undefined;
  #ended = false;

  /** False when the reader is too far behind. */
  push(request: agent.SessionRequest): boolean {
    if (this.#ended) return true;
    if (this.#waiting.length >= queuedMax) return false;
    this.#waiting.push(request);
    this.#wake();
    return true;
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<agent.SessionRequest, void, undefined> {
    while (!this.#ended) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        yield next;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
