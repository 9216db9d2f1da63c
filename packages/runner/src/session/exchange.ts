/** The runner's side of an exchange of bytes with its agent, for `burnin.network`. */
import { createHash } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { OperationId } from '@rackwright/messages';
import type * as runner from '@rackwright/messages/runner';
import { type Clock, errorText } from '@rackwright/platform';

/** Most that one exchange sends each way, bytes. */
export const exchangeBytesMax = 64 * 1024 * 1024;
const pieceBytesMax = 64 * 1024;

/** The duration and the bytes of a transfer. */
export interface TransferFigures {
  readonly bytes: number;
  readonly ms: number;
}

export type ExchangeOutcome =
  | { readonly kind: 'done'; readonly sent: TransferFigures; readonly received: TransferFigures }
  /** Bytes arrived changed; `problem` says which. */
  | {
      readonly kind: 'changed';
      readonly sent: TransferFigures;
      readonly received: TransferFigures;
      readonly problem: string;
    }
  /** The agent has no room for it now. */
  | { readonly kind: 'wait'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** It did not complete, for an unknown reason. */
  | { readonly kind: 'broken'; readonly reason: string };

/** The bytes to send; the agent sends as many. */
export interface ExchangePayload {
  /** 1 to {@link exchangeBytesMax}. */
  readonly bytes: number;
  /** Repeated until it is enough; not empty. */
  readonly content: Uint8Array;
}

type Request = MessageInitShape<typeof runner.ExchangeRequestSchema>;

/** Opens the call; it ends when the signal aborts. */
export type OpenExchange = (
  requests: AsyncIterable<Request>,
  signal: AbortSignal,
) => AsyncIterable<runner.ExchangeResponse>;

export interface ExchangeParts {
  readonly open: OpenExchange;
  readonly clock: Clock;
  readonly bootToken: string;
  readonly operationId: OperationId;
  readonly signal: AbortSignal;
}

/** Never rejects. */
export async function exchangeBytes(
  parts: ExchangeParts,
  wanted: ExchangePayload,
): Promise<ExchangeOutcome> {
  const over = new AbortController();
  const signal = AbortSignal.any([parts.signal, over.signal]);
  try {
    return await converse({ ...parts, signal }, wanted);
  } catch (error) {
    return { kind: 'broken', reason: errorText(error) };
  } finally {
    over.abort();
  }
}

async function converse(parts: ExchangeParts, wanted: ExchangePayload): Promise<ExchangeOutcome> {
  const sender = new Sender(parts, wanted);
  const heard = new IncomingBytes(parts.clock, wanted, sender);
  try {
    for await (const { message } of parts.open(sender.requests(), parts.signal)) {
      const end = heard.take(message);
      if (end !== undefined) return end;
    }
  } finally {
    // Lets the sender end where it still waits.
    sender.ready();
  }
  return { kind: 'broken', reason: 'the agent ended the exchange' };
}

/** The bytes to the agent. */
class Sender {
  readonly #parts: ExchangeParts;
  readonly #wanted: ExchangePayload;
  readonly #ready = Promise.withResolvers<void>();
  readonly #hash = createHash('sha256');

  constructor(parts: ExchangeParts, wanted: ExchangePayload) {
    this.#parts = parts;
    this.#wanted = wanted;
  }

  ready(): void {
    this.#ready.resolve();
  }

  /** The digest of all sent bytes; called once. */
  digest(): Buffer {
    return this.#hash.digest();
  }

  async *requests(): AsyncGenerator<Request, void, undefined> {
    const { bootToken, operationId, signal } = this.#parts;
    const { bytes, content } = this.#wanted;
    const begin = { bootToken, operationId, bytes: BigInt(bytes) };
    yield { message: { case: 'begin', value: begin } };
    await this.#ready.promise;
    for (let at = 0; at < bytes && !signal.aborted; ) {
      const from = at % content.length;
      const piece = content.subarray(from, from + Math.min(pieceBytesMax, bytes - at));
      this.#hash.update(piece);
      at += piece.length;
      yield { message: { case: 'piece', value: piece } };
    }
  }
}

/** The bytes from the agent. */
class IncomingBytes {
  readonly #clock: Clock;
  readonly #bytes: number;
  readonly #sender: Sender;
  readonly #hash = createHash('sha256');
  #lapMs: number;
  #sentMs = 0;
  #received = 0;
  /** The first bytes that arrived changed, for people. */
  #problem: string | undefined;
  #hasReceived = false;

  constructor(clock: Clock, { bytes }: ExchangePayload, sender: Sender) {
    this.#clock = clock;
    this.#bytes = bytes;
    this.#sender = sender;
    this.#lapMs = clock.suspendAwareMs();
  }

  /** The end of the exchange; undefined: it goes on. */
  take(message: runner.ExchangeResponse['message']): ExchangeOutcome | undefined {
    switch (message.case) {
      case 'ready':
        this.#lap();
        this.#sender.ready();
        return undefined;
      case 'wait':
      case 'refused':
        return { kind: message.case, reason: message.value };
      case 'receivedSha256':
        return this.#agentReceived(message.value);
      case 'piece':
        this.#received += message.value.length;
        if (this.#received > this.#bytes) return tooMuch;
        this.#hash.update(message.value);
        return undefined;
      case 'sentSha256':
        return this.#agentSent(message.value);
      case undefined:
        return undefined;
    }
  }

  #agentReceived(digest: Uint8Array): ExchangeOutcome | undefined {
    if (this.#hasReceived) return tooMuch;
    this.#hasReceived = true;
    this.#sentMs = this.#lap();
    if (!this.#sender.digest().equals(digest)) this.#problem = 'what was sent arrived changed';
    return undefined;
  }

  #agentSent(digest: Uint8Array): ExchangeOutcome {
    // Without the agent's digest nothing is known of the bytes that it received.
    if (!this.#hasReceived) return { kind: 'broken', reason: 'the agent skips half of it' };
    const isSame = this.#received === this.#bytes && this.#hash.digest().equals(digest);
    if (!isSame) this.#problem ??= 'what the agent sent arrived changed';
    const sent = { bytes: this.#bytes, ms: this.#sentMs };
    const received = { bytes: this.#received, ms: this.#lap() };
    return this.#problem === undefined
      ? { kind: 'done', sent, received }
      : { kind: 'changed', sent, received, problem: this.#problem };
  }

  /** Milliseconds since the last lap. */
  #lap(): number {
    const nowMs = this.#clock.suspendAwareMs();
    const ms = nowMs - this.#lapMs;
    this.#lapMs = nowMs;
    return ms;
  }
}

const tooMuch: ExchangeOutcome = { kind: 'broken', reason: 'the agent sends too much' };
