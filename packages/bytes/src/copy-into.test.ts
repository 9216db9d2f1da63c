import fc from 'fast-check';
import { expect, test } from 'vitest';
import { copyInto } from './copy-into.ts';

test.each([ArrayBuffer, SharedArrayBuffer])('a copy is what `set` copies, into %o', (Memory) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), fc.nat(9), fc.nat(9), (bytes, at, from) => {
      const source = new Uint8Array(bytes.length + from);
      source.set(bytes, from);
      const target = new Uint8Array(new Memory(90)).fill(0xaa);
      const wanted = new Uint8Array(90).fill(0xaa);
      copyInto(target, at, source.subarray(from));
      wanted.set(bytes, at);
      expect(Buffer.compare(target, wanted)).toBe(0);
    }),
  );
});

test('copyInto refuses what does not fit, and writes nothing of it', () => {
  const target = new Uint8Array(4);
  expect(() => copyInto(target, 2, Uint8Array.of(1, 2, 3))).toThrow(RangeError);
  expect(target).toEqual(new Uint8Array(4));
});
