import { ByteReader, ByteWriter } from '@rackwright/bytes';
import type { OptionCodec } from './codec.ts';

/** A client lists few; more than this fit no packet that we read. */
const architecturesMax = 1_024;

/** Option 93 (RFC 4578 §2.1): processor architectures by IANA number, the preferred one first. */
export const architectures: OptionCodec<readonly number[]> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'option 93 (architecture)');
    const values = [reader.uint16()];
    while (reader.remaining > 0) values.push(reader.uint16());
    return values;
  },
  encode(values) {
    const writer = new ByteWriter(2 * architecturesMax);
    for (const value of values) writer.uint16(value);
    return writer.finish();
  },
};
