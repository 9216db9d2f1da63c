/** Packed values come back unchanged, and damaged ones are reported. */
import { deflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { VALUE_BYTES_MAX } from '../contract.ts';
import { DICTIONARY_BYTES_MAX, Packer } from './pack.ts';

const text = (value: string) => new TextEncoder().encode(value);
const dictionary = text(
  '"kind": "erased", "certificate": "erasureCertificates/", hosts/h1 racks/r1',
);

/** Numbers from 0 to below `limit`, the same in each run. */
function drawing(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Random bytes in which parts of the dictionary and of itself recur. */
function drawn(draw: (limit: number) => number, length: number): Uint8Array {
  const bytes: number[] = [];
  while (bytes.length < length) {
    const source = [dictionary, bytes][draw(3)];
    if (source === undefined) bytes.push(draw(256));
    else bytes.push(...Array.from(source).slice(draw(source.length), draw(source.length)));
    if (bytes.length === 0) bytes.push(0);
  }
  return Uint8Array.from(bytes.slice(0, length));
}

test('any value comes back as it was', () => {
  const packer = new Packer(dictionary);
  let packedOnes = 0;
  for (let seed = 1; seed <= 600; seed += 1) {
    const draw = drawing(seed);
    const value = drawn(draw, draw(seed % 50 === 0 ? 60_000 : 1_500));
    const packed = packer.pack(value);
    if (packed === undefined) continue;
    packedOnes += 1;
    expect(packed.length).toBeLessThan(value.length);
    const back = packer.unpack(packed);
    expect(Buffer.compare(back, value), `seed ${seed}`).toBe(0);
  }
  expect(packedOnes).toBeGreaterThan(300);
});

test('one byte over and over, and the longest value, are packed', () => {
  for (const packer of [new Packer(dictionary), new Packer(new Uint8Array())]) {
    for (const length of [64, 65, 4_096, VALUE_BYTES_MAX]) {
      const value = new Uint8Array(length).fill(7);
      const packed = packer.pack(value) ?? value;
      expect(packed.length).toBeLessThan(Math.max(48, length / 500));
      expect(Buffer.compare(packer.unpack(packed), value)).toBe(0);
    }
  }
});

test('a value that would not become shorter is not packed', () => {
  const draw = drawing(7);
  const noise = Uint8Array.from({ length: 5_000 }, () => draw(256));
  const packer = new Packer(dictionary);
  expect(packer.pack(noise)).toBeUndefined();
  expect(packer.pack(new Uint8Array(63))).toBeUndefined();
  expect(packer.pack(new Uint8Array())).toBeUndefined();
});

test('damaged bytes are refused, or make a value of no more than the longest length', () => {
  const packer = new Packer(dictionary);
  const packed = packer.pack(drawn(drawing(3), 1_200)) ?? new Uint8Array();
  const draw = drawing(11);
  let refused = 0;
  for (let round = 0; round < 2_000; round += 1) {
    const damaged = packed.slice(0, round % 3 === 0 ? draw(packed.length) : packed.length);
    for (let at = 0; at < 3; at += 1) damaged[draw(damaged.length)] = draw(256);
    try {
      expect(packer.unpack(damaged).length).toBeLessThanOrEqual(VALUE_BYTES_MAX);
    } catch (error) {
      expect(error).toMatchObject({ message: 'a packed value is damaged' });
      refused += 1;
    }
  }
  expect(refused).toBeGreaterThan(500);
  const bomb = deflateRawSync(new Uint8Array(VALUE_BYTES_MAX + 1), { dictionary });
  expect(() => packer.unpack(bomb)).toThrow('damaged');
});

test('a dictionary that is too long is refused', () => {
  expect(() => new Packer(new Uint8Array(DICTIONARY_BYTES_MAX + 1))).toThrow(RangeError);
});
