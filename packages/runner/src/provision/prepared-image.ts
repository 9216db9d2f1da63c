/**
 * An image, from the served file to the content of the disk.
 *
 * P1 Everything that can be checked before the first write is checked before: format, size, tables
 *    of qcow2.
 * P2 All bytes of the file are hashed. A streamed file is found wrong at its very end, so a reader
 *    must not let anything count before the content has ended without an error. A qcow2 file is
 *    hashed before it is used, piece by piece, because it is not read from front to back.
 */
import {
  type ByteFilter,
  type ByteSource,
  type Content,
  checkDigest,
  checkUnpacked,
  type DeclaredFormat,
  digestPieces,
  type FoundFormat,
  formatOf,
  gathered,
  ImageError,
  magicBytes,
  openQcow2,
  pieceMemory,
  type Qcow2Image,
  type ReadingLimits,
  rangesOf,
  readFrom,
  unpack,
} from '@rackwright/disk-image';
import type { Hashes } from '@rackwright/platform';

/** The file, as it was declared. Digests: lower-case SHA-256. */
export interface ImageFile extends DeclaredFormat {
  /** The digest of the file as it is served. */
  readonly sha256: string;
  readonly sizeBytes?: number;
  /** Of the disk's content: decompressed, read through qcow2. */
  readonly contentSha256?: string;
  readonly contentSizeBytes?: number;
}

export interface PreparedImage {
  readonly found: FoundFormat;
  /** Of the disk's content; undefined: not known before the end. */
  readonly sizeBytes: number | undefined;
  /** Once. Throws `ImageError`, also after the last piece. */
  readonly content: AsyncGenerator<Content, void, undefined>;
  /** Gives up the unread rest; ends `content`, also where nobody has asked for it yet. */
  close(): Promise<void>;
}

export interface ImagePreparationOptions {
  readonly signal: AbortSignal;
  readonly unxz: ByteFilter;
  readonly hashes: Hashes;
  readonly limits?: ReadingLimits | undefined;
  /** Progress of the first reading of a file that is read twice, 0 to 1. */
  readonly checking: (fraction: number) => void;
}

/** Looks at the image without writing anything. Throws `ImageError`. */
export async function prepareImage(
  file: ImageFile,
  source: ByteSource,
  preparation: ImagePreparationOptions,
): Promise<PreparedImage> {
  let servedBytes: number | undefined;
  const watched: ByteSource = {
    open: async (from, signal) => {
      const opened = await source.open(from, signal);
      servedBytes ??= opened.sizeBytes;
      return opened;
    },
  };
  const { signal, limits } = preparation;
  const chunks = readFrom(watched, 0, file.sizeBytes, signal, limits);
  try {
    const start = await beginning(chunks);
    const found = formatOf(start, file);
    const sizeBytes = file.sizeBytes ?? servedBytes;
    if (found.format === 'qcow2') {
      if (found.compression !== 'none') {
        const problem = 'a compressed qcow2 file cannot be read by range: serve it as qcow2';
        throw new ImageError('unsupported', problem);
      }
      await chunks.return();
      return await prepareQcow2(file, watched, found, sizeBytes, preparation);
    }
    const isPlain = found.compression === 'none';
    if (isPlain) {
      checkSize(sizeBytes, file);
      checkDigest(file.sha256, file.contentSha256 ?? file.sha256);
    }
    const content = streamed(file, joined(start, chunks), found, preparation);
    return {
      found,
      sizeBytes: file.contentSizeBytes ?? (isPlain ? sizeBytes : undefined),
      content,
      close: () => closeBoth(content, () => chunks.return()),
    };
  } catch (error) {
    await chunks.return();
    throw error;
  }
}

/** Whether the disk's content is as long as was declared (P1). */
function checkSize(
  sizeBytes: number | undefined,
  { contentSizeBytes = sizeBytes }: Pick<ImageFile, 'contentSizeBytes'>,
): void {
  if (sizeBytes === undefined || sizeBytes === contentSizeBytes) return;
  const fault = sizeBytes > (contentSizeBytes ?? 0) ? 'tooLong' : 'truncated';
  const sizes = `${sizeBytes} bytes, not the declared ${contentSizeBytes}`;
  throw new ImageError(fault, `the content of the image has ${sizes}`);
}

/** Enough bytes to determine the format, or the whole image. */
async function beginning(chunks: AsyncGenerator<Uint8Array, void>): Promise<Uint8Array> {
  let start: Uint8Array = new Uint8Array();
  while (start.length < magicBytes) {
    const next = await chunks.next();
    if (next.done === true) break;
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value]);
  }
  return start;
}

async function* joined(
  start: Uint8Array,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (start.length > 0) yield start;
  yield* chunks;
}

async function* streamed(
  file: ImageFile,
  chunks: AsyncGenerator<Uint8Array, void, undefined>,
  { compression }: FoundFormat,
  { unxz, hashes, signal }: ImagePreparationOptions,
): AsyncGenerator<Content, void, undefined> {
  const hash = hashes.start(file.sizeBytes ?? Number.POSITIVE_INFINITY);
  const hashed = (async function* () {
    for await (const piece of gathered(chunks, pieceMemory())) {
      const done = hash.update(piece);
      yield piece;
      await done;
    }
  })();
  const checkWhole = async (): Promise<void> => {
    // The part that the decoder did not use or reach.
    while ((await hashed.next()).done !== true);
    checkDigest(await hash.digest(), file.sha256);
  };
  let isFirst = compression !== 'none';
  try {
    for await (const bytes of unpack(compression, withoutReturn(hashed), unxz, signal)) {
      if (isFirst) checkUnpacked(bytes);
      isFirst = false;
      yield { kind: 'bytes', bytes };
    }
    await checkWhole();
  } catch (error) {
    // A file that is not the right one explains everything that is broken in it.
    if (error instanceof ImageError && error.fault === 'malformed') await checkWhole();
    throw error;
  } finally {
    await hashed.return();
    await chunks.return();
    hash.close();
  }
}

/** Lets a reader stop early without closing its source. */
function withoutReturn(chunks: AsyncGenerator<Uint8Array, void>): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }) };
}

async function prepareQcow2(
  file: ImageFile,
  source: ByteSource,
  found: FoundFormat,
  sizeBytes: number | undefined,
  { signal, limits, checking }: ImagePreparationOptions,
): Promise<PreparedImage> {
  const progress = (bytes: number): void => {
    checking(sizeBytes === undefined ? 0 : bytes / sizeBytes);
  };
  const declared = { sha256: file.sha256, sizeBytes };
  const pieces = await digestPieces(source, declared, { signal, limits, progress });
  const ranges = rangesOf(source, pieces, { signal, limits });
  let image: Qcow2Image;
  try {
    image = await openQcow2(ranges);
    checkSize(image.header.sizeBytes, file);
  } catch (error) {
    await ranges.close();
    throw error;
  }
  const content = (async function* () {
    try {
      yield* image.content();
    } finally {
      await ranges.close();
    }
  })();
  return {
    found,
    sizeBytes: image.header.sizeBytes,
    content,
    close: () => closeBoth(content, () => ranges.close()),
  };
}

/** A generator that was never started runs no clean-up: its source is closed as well. */
async function closeBoth(
  content: AsyncGenerator<Content, void, undefined>,
  closeSource: () => Promise<unknown>,
): Promise<void> {
  try {
    await content.return();
  } finally {
    await closeSource();
  }
}
