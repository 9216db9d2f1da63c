/**
 * Streaming decompression, with as much in memory as one piece needs.
 *
 * U1 A file may hold several frames one after another (`cat a.zst b.zst`, `pzstd`, padding). The
 *    decoders of Node stop without an error after the first frame that ends within a piece of
 *    input, so each frame gets a decoder of its own.
 * U2 Input that ends within a frame is truncated; input that is no frame is malformed: the output
 *    is never shorter without an error.
 * U3 A piece is valid until the next one is requested. Its memory is given back at once: left to
 *    the collector, it costs more than half as much as hashing the bytes.
 */
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { ImageError } from './failure.ts';
import type { Compression } from './format.ts';

/** A function that transforms bytes. Throws `ImageError`. */
export type ByteFilter = (
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
) => AsyncIterable<Uint8Array>;

/**
 * The size of a decoder's output pieces, bytes: with less, it is waited for as long as it works.
 */
const outputBytes = 1024 * 1024;
/**
 * Decoded bytes that nobody has taken yet, at most: below this the decoder does not wait. Bytes.
 */
const decodedBytesMax = 4 * outputBytes;
/** Window of a zstd frame, as a power of two: 128 MiB, what `zstd` itself takes without a flag. */
const zstdWindowLogMax = 27;

/**
 * Decompresses the bytes. `chunks`: best in large pieces (`gathered`); a chunk is not used after
 * the next is requested. `unxz`: for xz, which Node cannot read.
 */
export function unpack(
  compression: Compression,
  chunks: AsyncIterable<Uint8Array>,
  unxz: ByteFilter,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  switch (compression) {
    case 'none':
      return chunks;
    case 'xz':
      return unxz(chunks, signal);
    case 'gzip':
    case 'zstd':
      return unpackFrames(compression, chunks);
  }
}

type FrameFormat = 'gzip' | 'zstd';

async function* unpackFrames(
  kind: FrameFormat,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const input = chunks[Symbol.asyncIterator]();
  try {
    let rest = await nextOf(input);
    while (rest !== undefined) {
      rest = yield* unpackFrame(kind, input, rest);
      if (rest === undefined || kind === 'zstd') continue;
      // Zeros after the last member are padding (gzip(1) ignores them).
      while (rest !== undefined && rest.every((byte) => byte === 0)) rest = await nextOf(input);
    }
  } finally {
    await input.return?.();
  }
}

/** At least one byte; undefined at the end. */
async function nextOf(input: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
  for (;;) {
    const next = await input.next();
    if (next.done === true) return undefined;
    if (next.value.length > 0) return next.value;
  }
}

function decoderOf(kind: FrameFormat) {
  const sizes = { chunkSize: outputBytes, highWaterMark: decodedBytesMax };
  if (kind === 'gzip') return createGunzip(sizes);
  const params = { [constants.ZSTD_d_windowLogMax]: zstdWindowLogMax };
  return createZstdDecompress({ ...sizes, params });
}

/** Returns the bytes that its decoder has not used: the beginning of another frame. */
async function* unpackFrame(
  kind: FrameFormat,
  input: AsyncIterator<Uint8Array>,
  first: Uint8Array,
): AsyncGenerator<Uint8Array, Uint8Array | undefined, undefined> {
  const decoder = decoderOf(kind);
  let last = first;
  let fedBytes = 0;
  const over = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) decoder.once(event, () => resolve());
  });
  const feed = async (): Promise<void> => {
    for (let piece: Uint8Array | undefined = first; piece !== undefined; ) {
      last = piece;
      fedBytes += piece.length;
      const taken = new Promise<void>((resolve) => {
        decoder.write(last, () => resolve());
      });
      // A decoder at the end of its frame leaves the rest, and may emit no event.
      await Promise.race([taken, over]);
      if (decoder.bytesWritten < fedBytes) return;
      piece = await nextOf(input);
    }
    decoder.end();
  };
  const feeding = feed().catch((error: unknown) => {
    decoder.destroy(error instanceof Error ? error : new Error('no input', { cause: error }));
  });
  try {
    for await (const piece of decoder as AsyncIterable<Uint8Array>) {
      yield piece;
      giveBackFull(piece);
    }
    await feeding;
    const leftBytes = fedBytes - decoder.bytesWritten;
    if (leftBytes === 0) return undefined;
    if (leftBytes === fedBytes) throw new ImageError('malformed', `no ${kind} frame follows`);
    return last.subarray(last.length - leftBytes);
  } catch (error) {
    throw unpackError(kind, error);
  } finally {
    decoder.destroy();
  }
}

/**
 * U3. A decoder fills a buffer to its end, in pieces, and then takes another: after its last piece
 * the buffer is not needed any more.
 */
function giveBackFull({ buffer, byteOffset, length }: Uint8Array): void {
  const isWhole = buffer.byteLength === outputBytes && byteOffset + length === outputBytes;
  if (isWhole && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

function unpackError(kind: FrameFormat, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'Z_BUF_ERROR') {
    return new ImageError('truncated', `the ${kind} file ends within a frame`, { cause: error });
  }
  if (code?.startsWith('Z_') === true || code?.startsWith('ZSTD_') === true) {
    return new ImageError('malformed', `the ${kind} file is broken: ${message}`, { cause: error });
  }
  return error;
}
