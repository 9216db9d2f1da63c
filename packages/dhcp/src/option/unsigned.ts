import { ByteReader, ByteWriter } from '@rackwright/bytes';
import type { OptionCodec } from './codec.ts';

/** A number of 16 bits (option 57, bytes). */
export const unsigned16: OptionCodec<number> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'option of 16 bits');
    const value = reader.uint16();
    reader.expectEnd();
    return value;
  },
  encode(value) {
    return new ByteWriter(2).uint16(value).finish();
  },
};

/** A number of 32 bits (options 51, 58, 59, seconds; 0xffffffff means for ever). */
export const unsigned32: OptionCodec<number> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'option of 32 bits');
    const value = reader.uint32();
    reader.expectEnd();
    return value;
  },
  encode(value) {
    return new ByteWriter(4).uint32(value).finish();
  },
};
