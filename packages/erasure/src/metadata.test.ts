import { expect, test } from 'vitest';
import { metadataSpanBytes, metadataSpans } from './metadata.ts';

const region = (sizeBytes: number) => ({ name: 'sda', sizeBytes, logicalBlockBytes: 512 });
const part = (offsetBytes: number, sizeBytes: number, of = 'sda') => {
  return { region: of, offsetBytes, sizeBytes };
};
const most = metadataSpanBytes;

test('both ends of a disk are its metadata, and all of a small one', () => {
  expect(metadataSpans(region(100 * most), [])).toEqual([
    { offset: 0, length: most },
    { offset: 99 * most, length: most },
  ]);
  for (const sizeBytes of [4096, most, 2 * most]) {
    expect(metadataSpans(region(sizeBytes), [])).toEqual([{ offset: 0, length: sizeBytes }]);
  }
});

test('both ends of each partition of the same region are metadata, too', () => {
  const partitions = [part(10 * most, 20 * most), part(50 * most, most / 2), part(0, most, 'sdb')];
  expect(metadataSpans(region(100 * most), partitions)).toEqual([
    { offset: 0, length: most },
    { offset: 10 * most, length: most },
    { offset: 29 * most, length: most },
    { offset: 50 * most, length: most / 2 },
    { offset: 99 * most, length: most },
  ]);
});

test('a span that does not begin and end at blocks is widened to them, within the disk', () => {
  const sizeBytes = 100 * most + 512;
  const spans = metadataSpans(region(sizeBytes), [part(10 * most + 512, 5_000)]);
  expect(spans).toContainEqual({ offset: 10 * most, length: 8_192 });
  const last = spans.at(-1);
  expect((last?.offset ?? 0) + (last?.length ?? 0)).toBe(sizeBytes);
  for (const { offset } of spans) expect(offset % 4_096).toBe(0);
});

test('a partition that its table puts elsewhere than on the disk has no metadata there', () => {
  const ends = metadataSpans(region(100 * most), []);
  for (const wrong of [part(200 * most, most), part(-5 * most, most)]) {
    expect(metadataSpans(region(100 * most), [wrong])).toEqual(ends);
  }
});

test('spans that touch or overlap become one', () => {
  const partitions = [part(most, 3 * most), part(2 * most, most), part(98 * most, most)];
  expect(metadataSpans(region(100 * most), partitions)).toEqual([
    { offset: 0, length: 4 * most },
    { offset: 98 * most, length: 2 * most },
  ]);
});
