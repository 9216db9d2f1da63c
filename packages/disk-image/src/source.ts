/**
 * The bytes of an image file, from any source.
 *
 * S1 Not one byte more than the file has is handed on; fewer is an error.
 * S2 A broken connection is resumed where it broke, a bounded number of times.
 */
import { ImageError } from './failure.ts';

export interface OpenBytes {
  /** Where it begins: the requested offset, or 0 when the server knows no ranges. */
  readonly start: number;
  /** The size of the whole file; undefined: the server does not report it. */
  readonly sizeBytes?: number;
  /**
   * The reader owns each chunk: it may be empty when the next is requested. Throws `SourceBroken`
   * when the connection broke, so that a retry makes sense.
   */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Gives up the unread rest; harmless when it is over. */
  close(): void;
}

/** Somebody who has the file. */
export interface ByteSource {
  /** Rejects with `SourceBroken`, or with `ImageError` when asking again makes no sense. */
  open(from: number, signal: AbortSignal): Promise<OpenBytes>;
}

/** The connection broke, or could not be made; the next may do better. */
export class SourceBroken extends Error {
  override readonly name = 'SourceBroken';
}

export interface ReadingLimits {
  /** Connections in a row that may bring nothing. */
  readonly emptyBreaksMax: number;
  /** All together, however much each brought. */
  readonly breaksMax: number;
  /** Waits before connection number `count` in a row that has brought nothing yet. */
  pause(count: number): Promise<void>;
}

/** For sources that need no time to recover. */
export const defaultReadingLimits: ReadingLimits = {
  emptyBreaksMax: 5,
  breaksMax: 64,
  pause: () => Promise.resolve(),
};

/** The file from `from` to its end (S1, S2). `sizeBytes`: as declared, if it was. */
export async function* readFrom(
  source: ByteSource,
  from: number,
  sizeBytes: number | undefined,
  signal: AbortSignal,
  limits: ReadingLimits = defaultReadingLimits,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reading: ReadPosition = { at: from, ends: sizeBytes };
  let emptyBreaks = 0;
  for (let breaks = 1; ; breaks += 1) {
    const before = reading.at;
    const broken = yield* readOnce(source, reading, signal);
    if (broken === undefined) return;
    emptyBreaks = reading.at > before ? 0 : emptyBreaks + 1;
    if (emptyBreaks >= limits.emptyBreaksMax || breaks >= limits.breaksMax || signal.aborted) {
      const read = `after ${reading.at} bytes`;
      throw new ImageError(
        'unreachable',
        `the image cannot be read further ${read}: ${broken.message}`,
      );
    }
    await limits.pause(emptyBreaks);
  }
}

interface ReadPosition {
  at: number;
  /** The end of the file, once it is known. */
  ends: number | undefined;
}

/** Reads one connection. Answers why it broke; undefined: the file is over. */
async function* readOnce(
  source: ByteSource,
  reading: ReadPosition,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, SourceBroken | undefined, undefined> {
  let opened: OpenBytes | undefined;
  try {
    opened = await source.open(reading.at, signal);
    checkSize(reading, opened.sizeBytes);
    let skip = reading.at - opened.start;
    if (skip < 0)
      throw new ImageError('unreachable', 'the server begins behind what was asked for');
    for await (const chunk of opened.chunks) {
      const piece = chunk.subarray(Math.min(skip, chunk.length));
      skip -= chunk.length - piece.length;
      if (piece.length === 0) continue;
      reading.at += piece.length;
      if (reading.ends !== undefined && reading.at > reading.ends) {
        throw new ImageError('tooLong', `more came than the ${reading.ends} bytes of the image`);
      }
      yield piece;
      if (reading.at === reading.ends) break;
    }
    return breakAtEnd(reading, opened.sizeBytes);
  } catch (error) {
    if (error instanceof SourceBroken) return error;
    throw error;
  } finally {
    opened?.close();
  }
}

function checkSize(reading: ReadPosition, sizeBytes: number | undefined): void {
  if (sizeBytes === undefined) return;
  const { ends = sizeBytes } = reading;
  if (sizeBytes !== ends) {
    const fault = sizeBytes < ends ? 'truncated' : 'tooLong';
    throw new ImageError(fault, `the image has ${ends} bytes; what is served has ${sizeBytes}`);
  }
  reading.ends = sizeBytes;
}

/** The break of a connection that has ended without an error. */
function breakAtEnd(
  { at, ends }: ReadPosition,
  served: number | undefined,
): SourceBroken | undefined {
  if (ends === undefined || at >= ends) return undefined;
  // The connection was cut although the server had reported the size.
  if (served !== undefined) return new SourceBroken(`only ${at} of ${ends} bytes came`);
  throw new ImageError('truncated', `the image ends after ${at} of ${ends} bytes`);
}
