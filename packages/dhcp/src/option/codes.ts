import type { OptionCodec } from './codec.ts';

/** Option 55: the codes that the client asks for, in its order of preference. */
export const codes: OptionCodec<readonly number[]> = {
  decode(bytes) {
    return [...bytes];
  },
  encode(value) {
    return Uint8Array.from(value);
  },
};
