import { expect, test } from 'vitest';
import { makeBootMedium } from './iso.ts';

const loader = Uint8Array.from({ length: 100_000 }, (_, at) => at & 0xff);

test('the same loaders give the same medium, and others another', () => {
  const one = makeBootMedium({ uefiX64: loader });
  expect(Buffer.compare(one, makeBootMedium({ uefiX64: loader }))).toBe(0);
  expect(Buffer.compare(one, makeBootMedium({ uefiArm64: loader }))).not.toBe(0);
});

test('the boot catalog adds up to nothing, and leads to a boot sector within the medium', () => {
  const image = makeBootMedium({ uefiX64: loader });
  const view = new DataView(image.buffer);
  const catalog = view.getUint32(17 * 2048 + 71, true) * 2048;
  let sum = 0;
  for (let at = 0; at < 32; at += 2) sum += view.getUint16(catalog + at, true);
  expect(sum & 0xffff).toBe(0);
  const start = view.getUint32(catalog + 40, true) * 2048;
  expect([...image.subarray(start + 510, start + 512)]).toEqual([0x55, 0xaa]);
  expect(start + view.getUint16(catalog + 38, true) * 512).toBe(image.length);
});

test('no loader, and loaders larger than a medium, are refused', () => {
  expect(() => makeBootMedium({})).toThrow('needs a loader');
  const large = new Uint8Array(31 * 1024 * 1024);
  expect(() => makeBootMedium({ uefiX64: large })).toThrow('at most 31457280 fit a medium');
});
