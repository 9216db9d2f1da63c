/**
 * The 512-byte header of a tar entry (POSIX.1-1988 ustar, with GNU's and pax' extensions), and the
 * records of a pax extended header (POSIX.1-2001). Pure.
 */
import { OciError } from '../failure.ts';

export const blockBytes = 512;

export interface TarHeader {
  readonly name: string;
  readonly linkName: string;
  /** Permission bits with set-user-id, set-group-id and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  /** The type's character; NUL of old archives is "0". */
  readonly type: string;
}

const permissionBits = 0o7777;
const idMax = 0xffff_fffe;

/** Undefined for a block of zeros, which ends an archive. Throws `malformed`. */
export function parseHeader(block: Uint8Array): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const written = numberAt(block, 148, 8);
  const { unsigned, signed } = checksums(block);
  // Old programs summed the bytes as signed.
  if (written !== unsigned && written !== signed) {
    throw new OciError('malformed', 'the archive has a header with a wrong checksum');
  }
  const type = block[156] === 0 ? '0' : String.fromCharCode(block[156] ?? 0);
  const isUstar = textAt(block, 257, 6) === 'ustar';
  // GNU's own format has times where ustar has the name's beginning.
  const isPosix = isUstar && block[262] === 0;
  const prefix = isPosix ? textAt(block, 345, 155) : '';
  const name = textAt(block, 0, 100);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    linkName: textAt(block, 157, 100),
    mode: numberAt(block, 100, 8) & permissionBits,
    uid: idAt(block, 108),
    gid: idAt(block, 116),
    sizeBytes: numberAt(block, 124, 12),
    type,
  };
}

function checksums(block: Uint8Array): { unsigned: number; signed: number } {
  let unsigned = 0;
  let signed = 0;
  for (const [at, byte] of block.entries()) {
    const counted = at >= 148 && at < 156 ? 0x20 : byte;
    unsigned += counted;
    signed += counted > 127 ? counted - 256 : counted;
  }
  return { unsigned, signed };
}

function idAt(block: Uint8Array, at: number): number {
  const id = numberAt(block, at, 8);
  if (id > idMax) throw new OciError('malformed', 'the archive has an owner without a number');
  return id;
}

/** Octal text, or base 256 when the first bit is set (GNU). */
function numberAt(block: Uint8Array, at: number, length: number): number {
  const field = block.subarray(at, at + length);
  const [first = 0] = field;
  if ((first & 0x80) !== 0) return binaryNumber(field);
  const text = String.fromCharCode(...field)
    .replace(/\0.*$/s, '')
    .trim();
  if (text === '') return 0;
  if (!/^[0-7]+$/.test(text)) throw noNumber();
  return Number.parseInt(text, 8);
}

function binaryNumber(field: Uint8Array): number {
  let value = 0;
  for (const [at, byte] of field.entries()) value = value * 256 + (at === 0 ? byte & 0x7f : byte);
  if (!Number.isSafeInteger(value)) throw noNumber();
  return value;
}

function noNumber(): OciError {
  return new OciError('malformed', 'the archive has a header without a number where one must be');
}

function textAt(block: Uint8Array, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return decode(end === -1 ? field : field.subarray(0, end));
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Names are texts here: two names that are not UTF-8 could decode to the same text. */
export function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    // `fatal`: the decoder throws a TypeError for just this reason.
    throw new OciError('malformed', 'the archive has a name that is not UTF-8');
  }
}

/** "LENGTH KEY=VALUE\n" one after the other. */
export function parsePax(bytes: Uint8Array): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at);
    const digits = space === -1 ? '' : decode(bytes.subarray(at, space));
    const end = at + Number(digits);
    if (!/^[1-9]\d{0,8}$/.test(digits) || end > bytes.length || bytes[end - 1] !== 0x0a) {
      throw new OciError('malformed', 'the archive has an extended header that cannot be read');
    }
    const record = bytes.subarray(space + 1, end - 1);
    const equals = record.indexOf(0x3d);
    if (equals < 1) throw new OciError('malformed', 'an extended header has a record without "="');
    const key = decode(record.subarray(0, equals));
    // Values of others, such as extended attributes, need be no text.
    if (usedKeys.has(key)) records.set(key, decode(record.subarray(equals + 1)));
    else if (key.startsWith('GNU.sparse.')) throw sparse();
    at = end;
  }
  return records;
}

const usedKeys: ReadonlySet<string> = new Set(['path', 'linkpath', 'size', 'uid', 'gid']);

export function sparse(): OciError {
  return new OciError('malformed', 'the archive holds a sparse file, which is not taken');
}
