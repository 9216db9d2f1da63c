/**
 * The requirements of every option codec: golden bytes, refused truncations, round trip, no other
 * error.
 */
import { DecodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OptionCodec } from './codec.ts';

export interface CodecCase<Value> {
  /** Wire bytes in hex, and their value. */
  readonly golden: readonly (readonly [hex: string, value: Value])[];
  /** Any value that the codec can write. */
  readonly values: fc.Arbitrary<Value>;
  /** Bytes in hex that are no such value. */
  readonly refused: readonly string[];
}

export function hexBytes(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/[0-9a-f]{2}/g) ?? [], (pair) => Number.parseInt(pair, 16));
}

export function testCodec<Value>(codec: OptionCodec<Value>, cases: CodecCase<Value>): void {
  test('the codec decodes and encodes the golden values', () => {
    for (const [hex, value] of cases.golden) {
      expect(codec.decode(hexBytes(hex))).toEqual(value);
      expect([...codec.encode(value)]).toEqual([...hexBytes(hex)]);
    }
  });

  test('the codec refuses what is no such value', () => {
    for (const hex of cases.refused) {
      expect(() => codec.decode(hexBytes(hex))).toThrow(DecodeError);
    }
  });

  test('the codec returns any value unchanged', () => {
    fc.assert(
      fc.property(cases.values, (value) => {
        expect(codec.decode(codec.encode(value))).toEqual(value);
      }),
    );
  });

  test('the codec throws nothing but its own error, whatever it is given', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          codec.decode(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError);
        }
      }),
      { numRuns: 300 },
    );
  });
}

/** Any dotted IPv4 address. */
export const anyAddress = fc
  .tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
  .map((bytes) => bytes.join('.'));

/** Text of one byte per character without zeros. */
export function anyText(maxLength: number): fc.Arbitrary<string> {
  return fc
    .uint8Array({ maxLength, min: 1 })
    .map((bytes) => String.fromCharCode(...bytes.map((byte) => byte || 1)));
}
