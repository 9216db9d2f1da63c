import { ByteReader, ByteWriter } from '@rackwright/bytes';
import { decodeAddress, encodeAddress } from '../address.ts';
import type { OptionCodec } from './codec.ts';

/** RFC 3396 lets an option be long; more addresses than this fit no packet that we read. */
const addressesMax = 512;

/** One or more IPv4 addresses, the preferred one first (options 3, 6). */
export const addresses: OptionCodec<readonly string[]> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'address list option');
    const values = [decodeAddress(reader)];
    while (reader.remaining > 0) values.push(decodeAddress(reader));
    return values;
  },
  encode(values) {
    const writer = new ByteWriter(4 * addressesMax);
    for (const value of values) writer.bytes(encodeAddress(value));
    return writer.finish();
  },
};
