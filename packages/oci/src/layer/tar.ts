/**
 * Reads a tar archive as a stream.
 *
 * 1. Entries, the bytes of their headers and of their contents are bounded.
 * 2. An unknown part is refused, never skipped: an archive is unpacked whole or not at all.
 *
 * Must not: judge names. The code that unpacks decides where an entry may lead (`layer/path.ts`).
 */
import { OciError } from '../failure.ts';
import { endsWithin, Pieces } from './pieces.ts';
import { blockBytes, decode, parseHeader, parsePax, sparse, type TarHeader } from './tar-header.ts';

export type TarEntry = TarAttributes & TarKind;

interface TarAttributes {
  /** The name as written: its target was not checked. */
  readonly name: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

type TarKind =
  /** Read `content` before the next entry is requested; an unread rest is skipped. */
  | {
      readonly kind: 'file';
      readonly sizeBytes: number;
      readonly content: AsyncIterable<Uint8Array>;
    }
  | { readonly kind: 'folder' }
  | { readonly kind: 'symlink'; readonly target: string }
  | { readonly kind: 'hardlink'; readonly target: string }
  /** A device, or a named pipe. */
  | { readonly kind: 'special' };

export interface TarLimits {
  readonly entriesMax: number;
  /** Sum of the sizes of all files. */
  readonly contentBytesMax: number;
  /** Bytes of one name, and of one extended header. */
  readonly headerBytesMax: number;
}

export const defaultTarLimits: TarLimits = {
  entriesMax: 500_000,
  contentBytesMax: 4 * 1024 * 1024 * 1024,
  headerBytesMax: 64 * 1024,
};

/** Throws `OciError`; what `chunks` throws passes through. */
export async function* readTar(
  chunks: AsyncIterable<Uint8Array>,
  limits: TarLimits = defaultTarLimits,
): AsyncGenerator<TarEntry, void, undefined> {
  const pieces = new Pieces(chunks);
  try {
    yield* entriesOf(pieces, limits);
    await pieces.drain();
  } finally {
    await pieces.close();
  }
}

async function* entriesOf(
  pieces: Pieces,
  limits: TarLimits,
): AsyncGenerator<TarEntry, void, undefined> {
  let contentBytes = 0;
  for (let entries = 1; ; entries += 1) {
    const header = await nextHeader(pieces, limits);
    if (header === undefined) return;
    if (entries > limits.entriesMax) {
      throw new OciError('tooLarge', `the archive has more than ${limits.entriesMax} entries`);
    }
    const content = new Content(pieces, sizeOf(header));
    contentBytes += content.bytes;
    if (contentBytes > limits.contentBytesMax) {
      const message = `the archive holds more than ${limits.contentBytesMax} bytes`;
      throw new OciError('tooLarge', message);
    }
    const { name, mode, uid, gid } = header;
    yield { name, mode, uid, gid, ...kindOf(header, content) };
    await content.end();
  }
}

/** Only files have contents, also when the header of another type gives a size. */
function sizeOf({ type, sizeBytes }: TarHeader): number {
  return '07'.includes(type) ? sizeBytes : 0;
}

function kindOf(header: TarHeader, content: Content): TarKind {
  switch (header.type) {
    case '0':
    case '7':
      // Archives from before 1988 mark folders so.
      if (header.name.endsWith('/') && content.bytes === 0) return { kind: 'folder' };
      return { kind: 'file', sizeBytes: content.bytes, content };
    case '1':
      return { kind: 'hardlink', target: header.linkName };
    case '2':
      return { kind: 'symlink', target: header.linkName };
    case '3':
    case '4':
    case '6':
      return { kind: 'special' };
    case '5':
      return { kind: 'folder' };
    case 'S':
      throw sparse();
    default: {
      const type = JSON.stringify(header.type);
      throw new OciError('malformed', `the archive has an entry of the unknown type ${type}`);
    }
  }
}

/** The next real header, completed by the extended headers before it. */
async function nextHeader(pieces: Pieces, limits: TarLimits): Promise<TarHeader | undefined> {
  let changes: Partial<TarHeader> = {};
  for (let extensions = 0; extensions <= extensionsMax; extensions += 1) {
    const block = await pieces.exactly(blockBytes);
    const header = block === undefined ? undefined : parseHeader(block);
    if (header === undefined) {
      if (extensions > 0) throw endsWithin();
      return undefined;
    }
    switch (header.type) {
      case 'L':
        changes = { ...changes, name: nameIn(await extension(pieces, header, limits)) };
        break;
      case 'K':
        changes = { ...changes, linkName: nameIn(await extension(pieces, header, limits)) };
        break;
      case 'x':
        changes = { ...changes, ...paxChanges(await extension(pieces, header, limits)) };
        break;
      case 'g':
        // Comments of the archive's author; their names and sizes are not used.
        await extension(pieces, header, limits);
        break;
      default:
        return { ...header, ...changes };
    }
  }
  throw new OciError('malformed', 'the archive extends one entry again and again');
}

const extensionsMax = 8;

async function extension(
  pieces: Pieces,
  { sizeBytes }: TarHeader,
  { headerBytesMax }: TarLimits,
): Promise<Uint8Array> {
  if (sizeBytes > headerBytesMax) {
    throw new OciError('tooLarge', `the archive has a header of more than ${headerBytesMax} bytes`);
  }
  const bytes = await pieces.exactly(sizeBytes);
  if (bytes === undefined) throw endsWithin();
  await pieces.skip(paddingOf(sizeBytes));
  return bytes;
}

/** GNU ends long names with a NUL. */
function nameIn(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return decode(end === -1 ? bytes : bytes.subarray(0, end));
}

function paxChanges(bytes: Uint8Array): Partial<TarHeader> {
  const records = parsePax(bytes);
  const path = records.get('path');
  const linkpath = records.get('linkpath');
  return {
    ...(path === undefined ? {} : { name: path }),
    ...(linkpath === undefined ? {} : { linkName: linkpath }),
    ...whole(records, 'size', 'sizeBytes'),
    ...whole(records, 'uid', 'uid'),
    ...whole(records, 'gid', 'gid'),
  };
}

function whole(
  records: ReadonlyMap<string, string>,
  key: string,
  field: 'sizeBytes' | 'uid' | 'gid',
): Partial<TarHeader> {
  const text = records.get(key);
  if (text === undefined) return {};
  if (!/^\d{1,15}$/.test(text)) {
    throw new OciError('malformed', `an extended header has a ${key} that is no number`);
  }
  return { [field]: Number(text) };
}

function paddingOf(bytes: number): number {
  return (blockBytes - (bytes % blockBytes)) % blockBytes;
}

/** The contents of one file, to be read once. */
class Content implements AsyncIterable<Uint8Array> {
  readonly bytes: number;
  readonly #pieces: Pieces;
  #left: number;

  constructor(pieces: Pieces, bytes: number) {
    this.#pieces = pieces;
    this.bytes = bytes;
    this.#left = bytes;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    while (this.#left > 0) {
      const piece = await this.#pieces.some(this.#left);
      if (piece === undefined) throw endsWithin();
      this.#left -= piece.length;
      yield piece;
    }
  }

  /** Skips the unread rest, and the padding of the last block. */
  async end(): Promise<void> {
    await this.#pieces.skip(this.#left + paddingOf(this.bytes));
    this.#left = 0;
  }
}
