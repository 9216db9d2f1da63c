import { ByteReader, ByteWriter } from '@rackwright/bytes';
import type { OptionCodec } from './codec.ts';

/** Which fixed fields hold options instead of text. */
export interface Overload {
  readonly bootFile: boolean;
  readonly serverName: boolean;
}

/** Option 52: 1 the file field, 2 the server name, 3 both. */
export const overload: OptionCodec<Overload> = {
  decode(bytes) {
    const reader = new ByteReader(bytes, 'option 52 (overload)');
    const which = reader.uint8();
    reader.expectEnd();
    if (which < 1 || which > 3) throw reader.error(`${which}, known are 1 to 3,`);
    return { bootFile: (which & 1) !== 0, serverName: (which & 2) !== 0 };
  },
  encode(value) {
    const which = (value.bootFile ? 1 : 0) + (value.serverName ? 2 : 0);
    return new ByteWriter(1).uint8(which).finish();
  },
};
