import { ByteReader } from '@rackwright/bytes';
import { decodeAddress, encodeAddress } from '../address.ts';
import type { OptionCodec } from './codec.ts';

/** One IPv4 address in dotted form (options 1, 50, 54). */
export const address: OptionCodec<string> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'address option');
    const value = decodeAddress(reader);
    reader.expectEnd();
    return value;
  },
  encode: encodeAddress,
};
