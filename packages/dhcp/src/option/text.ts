import { ByteWriter } from '@rackwright/bytes';
import { packetBytesMax } from '../limits.ts';
import type { OptionCodec } from './codec.ts';

/**
 * Text of one byte per character (options 12, 60, 66, 67). Not zero-terminated on the wire, but
 * firmware that ends it with zeros exists (RFC 2132 §2 asks receivers to cut them).
 */
export const text: OptionCodec<string> = {
  decode(bytes) {
    return String.fromCharCode(...bytes).replace(/\0+$/, '');
  },
  encode(value) {
    return new ByteWriter(packetBytesMax).text(value).finish();
  },
};
