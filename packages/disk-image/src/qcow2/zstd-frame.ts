/**
 * Where a Zstandard frame ends (RFC 8878, 3.1.1). Other bytes follow a compressed cluster in its
 * last sector, and they may be another frame.
 */
import { ByteReader } from '@rackwright/bytes';

const magicBytes = 4;
const blockHeaderBytes = 3;
const checksumBytes = 4;
const dictionaryIdBytes = [0, 1, 2, 4] as const;
const contentSizeBytes = [0, 2, 4, 8] as const;
const repeatedByte = 1;
const reserved = 3;

/** The length of the frame that `bytes` begin with. Throws `DecodeError`. */
export function zstdFrameBytes(bytes: Uint8Array): number {
  const reader = new ByteReader(bytes, 'zstd frame');
  reader.bytes(magicBytes);
  const descriptor = reader.uint8();
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  const sizeBytes = sizeFlag === 0 && isSingleSegment ? 1 : (contentSizeBytes[sizeFlag] ?? 0);
  const windowBytes = isSingleSegment ? 0 : 1;
  reader.bytes(windowBytes + (dictionaryIdBytes[descriptor & 3] ?? 0) + sizeBytes);
  for (let isLast = false; !isLast; ) {
    const [low = 0, middle = 0, high = 0] = reader.bytes(blockHeaderBytes);
    const header = low | (middle << 8) | (high << 16);
    isLast = (header & 1) !== 0;
    const kind = (header >> 1) & 3;
    if (kind === reserved) throw reader.error('a block of no known kind');
    reader.bytes(kind === repeatedByte ? 1 : header >> 3);
  }
  if ((descriptor & 4) !== 0) reader.bytes(checksumBytes);
  return reader.offset;
}
