/**
 * Writes answers over HTTP/1.1, at the pace of their reader.
 *
 * Invariants:
 * 1. At most one buffer of a connection is filled. The source of an answer is asked for its next
 *    part once the last one was sent.
 * 2. A connection whose peer reads nothing for `answerStallMs` is cut.
 */
import type { UniversalServerResponse } from '@connectrpc/connect/protocol';
import type { PageResponse } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import { pump } from '../wire/stream.ts';
import type { Exchange } from './http-listener.ts';

/** Of every answer: its type is the declared one, and it is for pages of this origin alone. */
const everyHeaders = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** Sends the answer to a call. Resolves when all of it was handed over, or the call is over. */
export async function sendCall(
  { response }: Exchange,
  { status, header, body }: UniversalServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const headers = { ...everyHeaders, 'cache-control': 'no-store' };
  response.writeHead(status, { ...headers, ...Object.fromEntries(header ?? []) });
  if (body !== undefined) await pump(body, response, asBuffer, signal);
  response.end();
}

/** Sends an answer that is no call. To HEAD its headers alone. */
export function sendWeb({ request, response }: Exchange, answer: PageResponse): void {
  const { status, headers, body } = answer;
  // RFC 9110 §8.6: neither of them has a length.
  const isBare = status === 204 || status === 304;
  const length = isBare ? {} : { 'content-length': String(body?.byteLength ?? 0) };
  const all: Record<string, string | string[]> = { ...everyHeaders, ...length };
  for (const [name, value] of Object.entries(headers)) {
    all[name] = typeof value === 'string' ? value : [...value];
  }
  response.writeHead(status, all);
  if (request.method === 'HEAD' || body === undefined) response.end();
  else response.end(body);
}

/** Invariant 2. */
export function cutWhenStalled(
  { response, socket }: Exchange,
  clock: Clock,
  stallMs: number,
): void {
  let cancel: Cancel = () => undefined;
  let before = -1;
  const check = (): void => {
    const now = socket.bytesWritten;
    if (socket.writableLength > 0 && now === before) {
      socket.destroy();
      return;
    }
    before = now;
    cancel = clock.after(stallMs, check);
  };
  cancel = clock.after(stallMs, check);
  response.once('close', () => cancel());
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
