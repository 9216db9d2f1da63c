import fc from 'fast-check';
import { expect, test } from 'vitest';
import { memoryModulesIn } from './smbios.ts';

/** A structure of type 17 as of SMBIOS 3.2, with this size field, and extended size in MiB. */
function device(size: number, extendedMiB = 0): number[] {
  const formatted = new Uint8Array(0x54);
  const fields = new DataView(formatted.buffer);
  formatted.set([17, formatted.length, 1, 0]);
  fields.setUint16(0x0c, size, true);
  formatted.set([1, 2], 0x10);
  formatted.set([3, 4, 0, 5], 0x17);
  fields.setUint32(0x1c, extendedMiB, true);
  const strings = 'DIMM_A1\0BANK 0\0Maker\0 S123 \0PN-8\0\0';
  return [...formatted, ...Buffer.from(strings)];
}

const bios = [0, 4, 0, 0, ...Buffer.from('vendor\0\0')];
const withoutStrings = [32, 5, 2, 0, 0, 0, 0];
const end = [127, 4, 3, 0, 0, 0];
const table = (...parts: readonly (readonly number[])[]) => Uint8Array.from(parts.flat());

test('the modules of a table are listed, and no empty slot', () => {
  const found = memoryModulesIn(
    table(bios, device(0), device(8_192), withoutStrings, device(0x7fff, 65_536), end, device(1)),
  );
  const named = { slot: 'DIMM_A1', manufacturer: 'Maker', model: 'PN-8', serial: 'S123' };
  expect(found).toEqual([
    { ...named, sizeBytes: 8n << 30n },
    { ...named, sizeBytes: 64n << 30n },
  ]);
  expect(memoryModulesIn(table(device(0xffff), device(0x8000 | 512), end))).toEqual([
    { ...named, sizeBytes: 512n << 10n },
  ]);
});

test('the reader takes any table without an error', () => {
  const whole = table(bios, device(8_192), device(0x7fff, 1), end);
  const damaged = fc
    .tuple(fc.nat(whole.length), fc.nat(whole.length - 1), fc.nat(255))
    .map(([length, at, byte]) => whole.slice(0, length).fill(byte, at, at + 1));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), damaged), (bytes) => {
      expect(memoryModulesIn(bytes).length).toBeLessThanOrEqual(2);
    }),
  );
});
