import { expect, test } from 'vitest';
import { fruImage } from './fru.ts';

test('header and product area have the sums and the layout of the standard', () => {
  const image = Buffer.from(fruImage({ manufacturer: 'AB', name: 'C', serial: 'S-1' }));
  const sum = (bytes: Buffer): number => bytes.reduce((total, byte) => total + byte, 0) & 0xff;
  const area = image.subarray(image.readUInt8(4) * 8);
  expect(image.length % 8).toBe(0);
  expect(sum(image.subarray(0, 8))).toBe(0);
  expect(sum(area)).toBe(0);
  expect(area.readUInt8(1) * 8).toBe(area.length);
  // manufacturer, name, part number (empty), version (empty), serial
  expect(area.subarray(3, 14).toString('latin1')).toBe('\xc2AB\xc1C\xc0\xc0\xc3S-1');
});

test('a text that the format cannot hold is refused', () => {
  expect(() => fruImage({ manufacturer: 'x'.repeat(64), name: '', serial: '' })).toThrow(
    '63 letters',
  );
});
