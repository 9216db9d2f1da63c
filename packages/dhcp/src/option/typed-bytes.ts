import { ByteReader, ByteWriter } from '@rackwright/bytes';
import { packetBytesMax } from '../limits.ts';
import type { OptionCodec } from './codec.ts';

/** A type and bytes whose meaning depends on it. */
export interface TypedBytes {
  readonly type: number;
  readonly bytes: Uint8Array;
}

function typedBytes(name: string, bytesMin: number, bytesMax: number): OptionCodec<TypedBytes> {
  return {
    decode(wire) {
      const reader = new ByteReader(wire, name);
      const type = reader.uint8();
      if (reader.remaining < bytesMin || reader.remaining > bytesMax) {
        throw reader.error(`${reader.remaining} bytes of identifier`);
      }
      return { type, bytes: reader.rest() };
    },
    encode({ type, bytes }) {
      return new ByteWriter(1 + bytesMax).uint8(type).bytes(bytes).finish();
    },
  };
}

/** Option 61 (RFC 2132 §9.14): type 1 and a MAC, 0 and a UUID, or 255 and a DUID (RFC 4361). */
export const clientIdentifier = typedBytes('option 61 (client identifier)', 1, packetBytesMax);

/** Option 97 (RFC 4578 §2.3): type 0 and the 16 bytes of the machine's UUID as SMBIOS has them. */
export const machineIdentifier = typedBytes('option 97 (machine identifier)', 16, 16);
