import { ByteReader, ByteWriter } from '@rackwright/bytes';
import type { OptionCodec } from './codec.ts';

/** The interface between the boot loader and its network card; type 1 is UNDI. */
export interface NetworkInterface {
  readonly type: number;
  readonly major: number;
  readonly minor: number;
}

/** Option 94 (RFC 4578 §2.2). */
export const networkInterface: OptionCodec<NetworkInterface> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'option 94 (network interface)');
    const value = { type: reader.uint8(), major: reader.uint8(), minor: reader.uint8() };
    reader.expectEnd();
    return value;
  },
  encode({ type, major, minor }) {
    return new ByteWriter(3).uint8(type).uint8(major).uint8(minor).finish();
  },
};
