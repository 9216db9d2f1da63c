/** Chance from a seed: the same seed gives the same numbers on every machine. */
import type { Random } from '@rackwright/platform';

/** xoshiro128** seeded through splitmix32; not for secrets. */
export function seededRandom(seed: number): Random & { below(limit: number): number } {
  const state = seedState(seed);
  const next = () => nextWord(state);
  return {
    fraction: () => next() / 2 ** 32,
    below: (limit) => Math.floor((next() / 2 ** 32) * limit),
    bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
  };
}

function seedState(seed: number): Uint32Array {
  let word = seed >>> 0;
  return Uint32Array.from({ length: 4 }, () => {
    word = (word + 0x9e3779b9) >>> 0;
    let mixed = word;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  });
}

function nextWord(state: Uint32Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = state;
  const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
  const shifted = b << 9;
  const c2 = c ^ a;
  const d2 = d ^ b;
  state[0] = a ^ d2;
  state[1] = b ^ c2;
  state[2] = c2 ^ shifted;
  state[3] = rotate(d2, 11);
  return result;
}

function rotate(word: number, bits: number): number {
  return ((word << bits) | (word >>> (32 - bits))) >>> 0;
}
