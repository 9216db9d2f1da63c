/**
 * Pushes to one registry (distribution-spec 1.1, "Push"): blobs in pieces, so that none has to fit
 * into memory, then the manifest that names them.
 *
 * 1. A blob that the registry has whole is not sent again. A blob that it has with another length
 *    is sent. An error says so when the registry keeps the other length.
 * 2. The registry checks each digest; a manifest is pushed after all that it names.
 */
import type { WebClient, WebLimits } from '@rackwright/platform';
import { type Digest, digestOf } from '../digest.ts';
import { OciError } from '../failure.ts';
import type { Descriptor } from '../manifest.ts';
import {
  type RegistryAccess,
  type RegistryAnswer,
  type RegistryAsk,
  RegistryExchange,
} from './exchange.ts';

export const defaultPushLimits: WebLimits = {
  // A piece has to be sent in it.
  answerTimeoutMs: 300_000,
  silenceMs: 30_000,
  headerBytesMax: 32 * 1024,
};

const pieceBytes = 8 * 1024 * 1024;

/** The descriptor of a pushed blob, beside its bytes. */
export interface PushedBlob extends Pick<Descriptor, 'digest' | 'sizeBytes'> {
  readonly repository: string;
  readonly signal?: AbortSignal;
  /** The number of sent bytes. */
  readonly onBytes?: (bytes: number) => void;
}

export class RegistryPublisher {
  readonly #exchange: RegistryExchange;

  constructor(web: WebClient, access: RegistryAccess, limits: WebLimits = defaultPushLimits) {
    this.#exchange = new RegistryExchange(web, access, limits);
  }

  /** Sends a blob; `chunks` are not read when the registry has it. Rejects with `OciError`. */
  async blob(blob: PushedBlob, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const { digest, onBytes } = blob;
    if ((await this.#keptBytes(blob)) === blob.sizeBytes) return;
    let at = await this.#expect(blob, 202, 'POST', 'blobs/uploads/', new Uint8Array());
    let sent = 0;
    for await (const piece of inPieces(chunks)) {
      const range = `${sent}-${sent + piece.length - 1}`;
      at = await this.#expect(blob, 202, 'PATCH', at, piece, { 'content-range': range });
      sent += piece.length;
      onBytes?.(sent);
    }
    if (sent !== blob.sizeBytes) {
      throw new OciError('truncated', `${sent} bytes were read of ${blob.sizeBytes} to be sent`);
    }
    const end = `${at}${at.includes('?') ? '&' : '?'}digest=${encodeURIComponent(digest)}`;
    await this.#expect(blob, 201, 'PUT', end, new Uint8Array());
    const kept = await this.#keptBytes(blob);
    if (kept === undefined || kept === blob.sizeBytes) return;
    const { registry } = this.#exchange;
    const problem = `keeps blob ${digest} with ${kept} of its ${blob.sizeBytes} bytes`;
    throw new OciError('truncated', `${registry} ${problem}, whatever is pushed: delete it there`);
  }

  /** The blob's length according to the registry; undefined: it is not there, or unknown. */
  async #keptBytes(blob: PushedBlob): Promise<number | undefined> {
    const there = await this.#ask(blob, 'HEAD', `blobs/${blob.digest}`);
    there.close();
    const length = there.headers['content-length'] ?? '';
    return there.status === 200 && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
  }

  /** Pushes a manifest or index under a tag, or under its own digest. Answers the digest. */
  async manifest(
    repository: string,
    bytes: Uint8Array,
    mediaType: string,
    tag?: string,
    signal?: AbortSignal,
  ): Promise<Digest> {
    const digest = digestOf(bytes);
    const target = { repository, digest, sizeBytes: bytes.length, ...(signal && { signal }) };
    const headers = { 'content-type': mediaType };
    await this.#expect(target, 201, 'PUT', `manifests/${tag ?? digest}`, bytes, headers);
    return digest;
  }

  /** Answers where the registry points to next; empty: nowhere. */
  async #expect(
    blob: PushedBlob,
    status: number,
    method: RegistryAsk['method'],
    path: string,
    body: Uint8Array,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const answer = await this.#ask(blob, method, path, body, headers);
    if (answer.status !== status) {
      throw await this.#exchange.refusal(answer, `${blob.repository}@${blob.digest} being pushed`);
    }
    answer.close();
    const { location = '' } = answer.headers;
    if (status === 202 && location === '') {
      throw new OciError('refused', `${this.#exchange.registry} does not say where to push`);
    }
    return location;
  }

  #ask(
    { repository, signal }: PushedBlob,
    method: RegistryAsk['method'],
    path: string,
    body?: Uint8Array,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RegistryAnswer> {
    const isPiece = method === 'PATCH';
    return this.#exchange.ask({
      ...{ repository, method, path, scope: 'pull,push', signal },
      headers: isPiece ? { ...headers, 'content-type': 'application/octet-stream' } : headers,
      ...(body === undefined ? {} : { body }),
    });
  }
}

/** Pieces of one size; the last one may be shorter. */
async function* inPieces(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let piece = new Uint8Array(pieceBytes);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const room = Math.min(chunk.length - at, pieceBytes - filled);
      piece.set(chunk.subarray(at, at + room), filled);
      filled += room;
      at += room;
      if (filled < pieceBytes) continue;
      yield piece;
      piece = new Uint8Array(pieceBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}
