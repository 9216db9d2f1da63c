/** The runner's side of an exchange of bytes with its agent, for `burnin.network`. */
import { createHash } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { OperationId } from '@rackwright/messages';
import type * as runner from '@rackwright/messages/runner';
import { type Clock, errorText } from '@rackwright/platform';

/** Most that one exchange sends each way, bytes. */
export const exchangeBytesMax = 64 * 1024 * 1024;
const pieceBytesMax = 64 * 1024;

/** How long something took, and how many bytes it was. */
export interface Moved {
  readonly bytes: number;
  readonly ms: number;
}

export type Exchanged =
  /** `problem`: what arrived otherwise than it was sent; empty: nothing. */
  | {
      readonly kind: 'done';
      readonly sent: Moved;
      readonly received: Moved;
      readonly problem: string;
    }
  /** The agent has no room for it now. */
  | { readonly kind: 'wait'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** It did not come to its end: nobody knows why. */
  | { readonly kind: 'broken'; readonly reason: string };

/** What is to be sent; the agent sends as many bytes. */
export interface ExchangeWanted {
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
  wanted: ExchangeWanted,
): Promise<Exchanged> {
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

async function converse(
  { open, clock, bootToken, operationId, signal }: ExchangeParts,
  { bytes, content }: ExchangeWanted,
): Promise<Exchanged> {
  const ready = Promise.withResolvers<void>();
  const ours = createHash('sha256');
  const theirs = createHash('sha256');
  async function* requests(): AsyncGenerator<Request, void, undefined> {
    const begin = { bootToken, operationId, bytes: BigInt(bytes) };
    yield { message: { case: 'begin', value: begin } };
    await ready.promise;
    for (let at = 0; at < bytes && !signal.aborted; ) {
      const from = at % content.length;
      const piece = content.subarray(from, from + Math.min(pieceBytesMax, bytes - at));
      ours.update(piece);
      at += piece.length;
      yield { message: { case: 'piece', value: piece } };
    }
  }
  let lastMs = clock.suspendAwareMs();
  const lap = (): number => {
    const nowMs = clock.suspendAwareMs();
    const ms = nowMs - lastMs;
    lastMs = nowMs;
    return ms;
  };
  let problem = '';
  let sentMs = 0;
  let received = 0;
  try {
    for await (const { message } of open(requests(), signal)) {
      switch (message.case) {
        case 'ready':
          lap();
          ready.resolve();
          break;
        case 'wait':
        case 'refused':
          return { kind: message.case, reason: message.value };
        case 'receivedSha256':
          sentMs = lap();
          if (!ours.digest().equals(message.value)) problem = 'what was sent arrived changed';
          break;
        case 'piece':
          received += message.value.length;
          if (received > bytes) return { kind: 'broken', reason: 'the agent sends too much' };
          theirs.update(message.value);
          break;
        case 'sentSha256': {
          const isSame = received === bytes && theirs.digest().equals(message.value);
          if (!isSame) problem ||= 'what the agent sent arrived changed';
          const moved = { sent: { bytes, ms: sentMs }, received: { bytes: received, ms: lap() } };
          return { kind: 'done', ...moved, problem };
        }
        case undefined:
          break;
      }
    }
  } finally {
    // Lets the sender end where it still waits.
    ready.resolve();
  }
  return { kind: 'broken', reason: 'the agent ended the exchange' };
}
