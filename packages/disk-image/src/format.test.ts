import { expect, test } from 'vitest';
import { ImageError } from './failure.ts';
import { checkUnpacked, formatOf } from './format.ts';

const head = (hex: string): Uint8Array => Buffer.from(hex.padEnd(64, '0'), 'hex');
const gzip = head('1f8b08');
const zstd = head('28b52ffd');
const qcow2 = head('514649fb');
const disk = head('eb63905d');

test('an undeclared format is derived from the first bytes', () => {
  expect(formatOf(disk, {})).toEqual({ format: 'raw', compression: 'none' });
  expect(formatOf(gzip, {})).toEqual({ format: 'raw', compression: 'gzip' });
  expect(formatOf(zstd, {})).toEqual({ format: 'raw', compression: 'zstd' });
  expect(formatOf(head('502a4d18'), {})).toEqual({ format: 'raw', compression: 'zstd' });
  expect(formatOf(head('fd377a585a00'), {})).toEqual({ format: 'raw', compression: 'xz' });
  expect(formatOf(qcow2, {})).toEqual({ format: 'qcow2', compression: 'none' });
  expect(formatOf(new Uint8Array(), {})).toEqual({ format: 'raw', compression: 'none' });
});

test.each([
  [qcow2, { format: 'raw' }, 'wrongFormat', 'declared as raw, but is qcow2'],
  [disk, { format: 'qcow2' }, 'wrongFormat', 'declared as qcow2, but is of no known format'],
  [gzip, { compression: 'zstd' }, 'wrongFormat', 'declared as zstd, but is gzip'],
  [zstd, { compression: 'none' }, 'wrongFormat', 'declared as not compressed, but is zstd'],
  [disk, { compression: 'xz' }, 'wrongFormat', 'declared as xz, but is not compressed'],
  [head('7668647866696c65'), {}, 'unsupported', 'the image is VHDX'],
] as const)('a file of a wrong declared or an unsupported format is refused', (...given) => {
  const [bytes, declared, fault, text] = given;
  let thrown: unknown;
  try {
    formatOf(bytes, declared);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(ImageError);
  expect(thrown).toMatchObject({ fault, message: expect.stringContaining(text) });
});

test('a compressed file may hold only a disk', () => {
  checkUnpacked(disk);
  expect(() => checkUnpacked(qcow2)).toThrow('a compressed qcow2 file');
  expect(() => checkUnpacked(gzip)).toThrow('but is gzip');
});
