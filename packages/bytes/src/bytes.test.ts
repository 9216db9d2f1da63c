import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter, DecodeError, EncodeError } from './index.ts';

test('the reader reads big-endian fields in the order they were written', () => {
  const written = new ByteWriter(64)
    .uint8(0xfe)
    .uint16(0x1234)
    .uint32(0xfedc_ba98)
    .zeroTerminated('blksize')
    .bytes(Uint8Array.of(7, 8))
    .finish();
  const reader = new ByteReader(written, 'sample');
  expect(reader.uint8()).toBe(0xfe);
  expect(reader.uint16()).toBe(0x1234);
  expect(reader.uint32()).toBe(0xfedc_ba98);
  expect(reader.zeroTerminated()).toBe('blksize');
  expect([...reader.rest()]).toEqual([7, 8]);
  reader.expectEnd();
});

test('the reader refuses a field that lacks one byte, and does not move', () => {
  const reads: [number, (reader: ByteReader) => unknown][] = [
    [1, (reader) => reader.uint8()],
    [2, (reader) => reader.uint16()],
    [4, (reader) => reader.uint32()],
    [9, (reader) => reader.bytes(9)],
    [1, (reader) => reader.zeroTerminated()],
  ];
  for (const [width, read] of reads) {
    const reader = new ByteReader(new Uint8Array(width - 1).fill(1), 'sample');
    expect(() => read(reader)).toThrow(DecodeError);
    expect(reader.offset).toBe(0);
  }
});

test('the reader and the writer refuse counts that are no length', () => {
  for (const count of [-1, 0.5, Number.NaN, 2 ** 40]) {
    expect(() => new ByteReader(new Uint8Array(4), 'sample').bytes(count)).toThrow(DecodeError);
    expect(() => new ByteWriter(4).zeros(count)).toThrow(EncodeError);
  }
});

test('an error says which field was read, and at which offset', () => {
  const reader = new ByteReader(Uint8Array.of(1, 2, 3), 'DHCP option 93');
  reader.uint16();
  expect(() => reader.uint16()).toThrow('DHCP option 93: 2 bytes needed, 1 there at byte 2');
  expect(() => reader.expectEnd()).toThrow('1 bytes left over');
});

test('the writer refuses values outside their field instead of cutting them', () => {
  expect(() => new ByteWriter(9).uint8(256)).toThrow(EncodeError);
  expect(() => new ByteWriter(9).uint16(-1)).toThrow(EncodeError);
  expect(() => new ByteWriter(9).uint32(2 ** 32)).toThrow(EncodeError);
  expect(() => new ByteWriter(9).text('☃')).toThrow(EncodeError);
  expect(() => new ByteWriter(9).zeroTerminated('a\0b')).toThrow(EncodeError);
});

test('the writer refuses to grow beyond its bound', () => {
  const writer = new ByteWriter(3).uint16(1);
  expect(() => writer.uint16(2)).toThrow('4 bytes do not fit into 3');
  expect([...writer.uint8(9).finish()]).toEqual([0, 1, 9]);
});

test('any bytes are written and read back unchanged, however they are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 }), (pieces) => {
      const writer = new ByteWriter(4096);
      for (const piece of pieces) {
        writer.uint16(piece.length).bytes(piece);
      }
      const reader = new ByteReader(writer.finish(), 'pieces');
      for (const piece of pieces) {
        expect([...reader.bytes(reader.uint16())]).toEqual([...piece]);
      }
      reader.expectEnd();
    }),
  );
});
