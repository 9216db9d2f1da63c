import { expect, test } from 'vitest';
import { differences, variants, variantsOf, vendorDifference } from './vendors.ts';

test('a row counts for a service that shows it, by what it answers of itself', () => {
  const serialOf = (manufacturer?: string) => vendorDifference({ manufacturer }).serialProperty;
  expect(serialOf('Dell Inc.')).toBe('SKU');
  expect(serialOf('Adell')).toBe('SerialNumber');
  expect(serialOf(undefined)).toBe('SerialNumber');
  expect(vendorDifference({ enterprise: 0x1291 }).bootFlagsReadBack).toBe('selectorOnly');
  expect(vendorDifference({})).toMatchObject({ maker: 'any', bootFlagsReadBack: 'full' });
});

test('every row names its source', () => {
  const rows = [...differences, ...Object.values(variants).flat()];
  for (const row of rows) expect(row.source.length, JSON.stringify(row)).toBeGreaterThan(8);
});

test('the way of the standard is tried before all others', () => {
  expect(variantsOf('etag')[0]).toBe('asGiven');
  expect(variantsOf('bootOff')[0]).toBe('enabledAlone');
});
