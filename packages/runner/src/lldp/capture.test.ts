import { DecodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeCapture, neighborsIn } from './capture.ts';
import {
  captureOf,
  frameOf,
  hexOf,
  leaveAt,
  lldpdCapture,
  mandatory,
  tlv,
} from './lldp.fixture.ts';

const port = (name: string, ttl = '0078') =>
  frameOf(tlv(1, '04020000000001') + tlv(2, `05${hexOf(name)}`) + tlv(3, ttl));

test('the neighbour heard last is reported with its time; one that signed off is not', () => {
  expect(neighborsIn(lldpdCapture.subarray(0, leaveAt))).toMatchObject([
    {
      systemName: 'leaf-1',
      portId: 'Ethernet7',
      portVlan: 42,
      heardTime: { seconds: 1_795_867_385n, nanos: 922_000_000 },
    },
  ]);
  expect(neighborsIn(lldpdCapture)).toEqual([]);
});

test.each(['big', 'little'] as const)('a capture of a %s-endian machine is read', (order) => {
  const ports = ['a', 'b', 'c', 'd', 'e', 'b'].map((name) => port(name));
  const file = captureOf([...ports, port('e', '0000')], order);
  expect(decodeCapture(file)).toHaveLength(7);
  expect(neighborsIn(file).map(({ portId }) => portId)).toEqual(['b', 'd', 'c', 'a']);
});

test('the reader reads the complete frames of a file that is still written to', () => {
  const file = captureOf([port('a'), port('b')], 'little');
  for (let length = 24; length < file.length; length += 1) {
    expect(decodeCapture(file.subarray(0, length)).length).toBeLessThan(2);
  }
  expect(() => decodeCapture(file.subarray(0, 23))).toThrow(DecodeError);
});

test('frames that are no LLDP are skipped; a capture not of Ethernet is refused', () => {
  const other = frameOf(mandatory, 'ffffffffffff');
  expect(neighborsIn(captureOf([other, port('a')], 'little'))).toHaveLength(1);
  const radio = captureOf([port('a')], 'little');
  radio[20] = 105;
  expect(() => decodeCapture(radio)).toThrow('link type 105');
  expect(neighborsIn(radio)).toEqual([]);
  expect(neighborsIn(new Uint8Array())).toEqual([]);
});

test('the reader gives a value or a decode error for any bytes', () => {
  const damaged = fc.tuple(fc.nat(lldpdCapture.length - 1), fc.nat(255)).map(([at, byte]) => {
    const file = lldpdCapture.slice();
    file[at] = byte;
    return file;
  });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 400 }), damaged), (file) => {
      expect(neighborsIn(file).length).toBeLessThanOrEqual(4);
    }),
  );
});
