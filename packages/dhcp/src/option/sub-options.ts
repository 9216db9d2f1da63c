import { ByteReader, ByteWriter } from '@rackwright/bytes';
import { packetBytesMax } from '../limits.ts';
import type { OptionCodec } from './codec.ts';

/** Sub-options in their order; a code may occur more than once. */
export type SubOptions = readonly (readonly [code: number, value: Uint8Array])[];

const pad = 0;
const end = 255;

/**
 * Options inside an option. `withPadAndEnd`: codes 0 and 255 are layout as in the packet itself
 * (options 43 and 175); a missing end is accepted, as firmware leaves it out. `bare`: every code
 * is a sub-option (option 82, RFC 3046 §2.0).
 */
export function subOptions(
  name: string,
  layout: 'withPadAndEnd' | 'bare',
): OptionCodec<SubOptions> {
  return {
    decode(bytes) {
      const reader = new ByteReader(bytes, name);
      const found: [number, Uint8Array][] = [];
      while (reader.remaining > 0) {
        const code = reader.uint8();
        if (layout === 'withPadAndEnd' && code === end) break;
        if (layout === 'withPadAndEnd' && code === pad) continue;
        found.push([code, reader.bytes(reader.uint8())]);
      }
      return found;
    },
    encode(values) {
      const writer = new ByteWriter(packetBytesMax);
      for (const [code, value] of values) {
        writer.uint8(code).uint8(value.length).bytes(value);
      }
      if (layout === 'withPadAndEnd') writer.uint8(end);
      return writer.finish();
    },
  };
}

/** Option 82: a relay's description of the client's place (1 circuit id, 2 remote id). */
export const relayAgent = subOptions('option 82 (relay agent)', 'bare');

/** Option 175: an iPXE's features, and settings for it (176: ask no proxy on port 4011). */
export const ipxe = subOptions('option 175 (iPXE)', 'withPadAndEnd');
