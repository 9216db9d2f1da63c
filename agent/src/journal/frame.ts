/**
 * The journal's file format: frames, one for each append, so that a torn write can only be the
 * last frame. A file that is written anew, and is there whole or not at all, has as many as its
 * records need.
 *
 *   "RWJ1" | payload length, uint32 | CRC-32 of length and payload, uint32 | payload
 *
 * The payload is JournalRecords, each behind its length (uint32). Numbers are big-endian.
 */
import { crc32 } from 'node:zlib';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { ByteReader, ByteWriter, EncodeError } from '@rackwright/bytes';
import { agent } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';

const magic = Uint8Array.of(0x52, 0x57, 0x4a, 0x31);
const headerBytes = 12;

/** A report with its evidence stays far below. */
export const framePayloadBytesMax = 64 * 1024 * 1024;
const lengthBytes = 4;

/** The content of a journal file. */
export type JournalContents =
  | { readonly kind: 'intact'; readonly records: readonly agent.JournalRecord[] }
  /** An append did not finish before a crash: its caller got no success. */
  | {
      readonly kind: 'torn';
      readonly records: readonly agent.JournalRecord[];
      readonly cutBytes: number;
    }
  /** Durable bytes are damaged or not ours to read: the journal must count as lost (R9). */
  | { readonly kind: 'damaged'; readonly problem: string };

/** The fewest frames that hold `records`; one also for none. */
export function encodeFrames(
  records: readonly agent.JournalRecord[],
  payloadBytesMax: number,
): Uint8Array[] {
  const payloads: Uint8Array[][] = [[]];
  let filled = 0;
  for (const record of records) {
    const bytes = toBinary(agent.JournalRecordSchema, record);
    const length = new ByteWriter(lengthBytes).uint32(bytes.length).finish();
    const added = length.length + bytes.length;
    if (filled > 0 && filled + added > payloadBytesMax) {
      payloads.push([]);
      filled = 0;
    }
    payloads.at(-1)?.push(length, bytes);
    filled += added;
  }
  return payloads.map(frameOf);
}

function frameOf(parts: readonly Uint8Array[]): Uint8Array {
  const payload = Buffer.concat(parts);
  if (payload.length > framePayloadBytesMax) {
    throw new EncodeError(`a record of ${payload.length} bytes is not read again`);
  }
  const header = new ByteWriter(headerBytes).bytes(magic).uint32(payload.length);
  return Buffer.concat([header.uint32(checksum(payload)).finish(), payload]);
}

/** Reads a journal file, telling a torn end from damage. Never throws. */
export function readFrames(file: Uint8Array): JournalContents {
  const records: agent.JournalRecord[] = [];
  let at = 0;
  while (at < file.length) {
    const payload = framePayloadAt(file, at);
    if (payload === undefined) return brokenAt(file, at, records);
    try {
      records.push(...decodePayload(payload));
    } catch (error) {
      const why = errorText(error);
      return { kind: 'damaged', problem: `the frame at byte ${at} cannot be read: ${why}` };
    }
    at += headerBytes + payload.length;
  }
  return { kind: 'intact', records };
}

/**
 * A frame is written only after the one before it was durable. A whole frame behind a broken one
 * therefore proves that the broken one had been whole.
 */
function brokenAt(
  file: Uint8Array,
  at: number,
  records: readonly agent.JournalRecord[],
): JournalContents {
  for (let next = at + 1; next <= file.length - headerBytes; next += 1) {
    if (file[next] === magic[0] && framePayloadAt(file, next) !== undefined) {
      const problem = `the frame at byte ${at} is damaged, the one at byte ${next} is whole`;
      return { kind: 'damaged', problem };
    }
  }
  return { kind: 'torn', records, cutBytes: file.length - at };
}

/** The payload of the whole frame at `at`, or undefined. */
function framePayloadAt(file: Uint8Array, at: number): Uint8Array | undefined {
  if (file.length - at < headerBytes) return undefined;
  const reader = new ByteReader(file.subarray(at), 'journal frame');
  if (!reader.bytes(magic.length).every((byte, index) => byte === magic[index])) return undefined;
  const length = reader.uint32();
  const sum = reader.uint32();
  if (length > framePayloadBytesMax || length > reader.remaining) return undefined;
  const payload = reader.bytes(length);
  return checksum(payload) === sum ? payload : undefined;
}

function decodePayload(payload: Uint8Array): agent.JournalRecord[] {
  const reader = new ByteReader(payload, 'journal payload');
  const records: agent.JournalRecord[] = [];
  while (reader.remaining > 0) {
    const record = fromBinary(agent.JournalRecordSchema, reader.bytes(reader.uint32()));
    if (record.record.case === undefined) {
      throw reader.error('a record of an unknown kind, from a newer version,');
    }
    records.push(record);
  }
  return records;
}

/** Over the length too: a length that lies must not match by chance. */
function checksum(payload: Uint8Array): number {
  const length = new ByteWriter(4).uint32(payload.length).finish();
  return crc32(payload, crc32(length));
}
