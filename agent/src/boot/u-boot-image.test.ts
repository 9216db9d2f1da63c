import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { uBootImage } from './u-boot-image.ts';

/** What U-Boot's `source` would run; throws where it would refuse the image. */
function sourced(image: Uint8Array): { name: string; script: string } {
  const bytes = Buffer.from(image);
  const [header, data] = [Buffer.from(bytes.subarray(0, 64)), bytes.subarray(64)];
  if (header.readUInt32BE(0) !== 0x27051956) throw new Error('no magic');
  const headerCrc = header.readUInt32BE(4);
  header.writeUInt32BE(0, 4);
  if (crc32(header) !== headerCrc) throw new Error('header checksum');
  if (header.readUInt32BE(12) !== data.length) throw new Error('length');
  if (crc32(data) !== header.readUInt32BE(24)) throw new Error('data checksum');
  if (header.readUInt8(30) !== 6) throw new Error('no script');
  const length = data.readUInt32BE(0);
  if (data.readUInt32BE(4) !== 0) throw new Error('more than one part');
  const name = header.subarray(32).toString('latin1').replace(/\0+$/, '');
  return { name, script: data.subarray(8, 8 + length).toString() };
}

test('U-Boot takes the image and finds the script in it', () => {
  const script = 'echo é\nboot\n';
  expect(sourced(uBootImage('Rackwright', script))).toEqual({ name: 'Rackwright', script });
});

test('a name that is too long is cut, and still ends with a zero', () => {
  const image = uBootImage('n'.repeat(40), '');
  expect(sourced(image)).toEqual({ name: 'n'.repeat(31), script: '' });
  expect(image[63]).toBe(0);
});

/** Made once by `mkimage -A arm -O linux -T script -C none -n Rackwright`, with no time set. */
const byMkimage = [
  '27051956b5cc2328000000000000001000000000000000001ffcb594050206005261636b77726967',
  '6874000000000000000000000000000000000000000000000000000800000000707865206765740a',
].join('');

test('the image is that of mkimage, byte for byte', () => {
  expect(Buffer.from(uBootImage('Rackwright', 'pxe get\n')).toString('hex')).toBe(byMkimage);
});
