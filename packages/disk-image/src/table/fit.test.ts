import { expect, test } from 'vitest';
import { ImageError } from '../failure.ts';
import { fitTable } from './fit.ts';
import { type MbrPartition, writeMbrEntry } from './mbr.ts';

const mib = 1024 * 1024;
const blocksOf = (mebibytes: number): number => (mebibytes * mib) / 512;

/** From and to in MiB. */
function mbrOf(...partitions: readonly (readonly [number, number])[]): Uint8Array {
  const head = new Uint8Array(mib);
  head.set([0x55, 0xaa], 510);
  for (const [index, [from, to]] of partitions.entries()) {
    const place = { firstBlock: blocksOf(from), lastBlock: blocksOf(to) - 1 };
    const entry: MbrPartition = { number: index + 1, type: 0x83, active: index === 0, ...place };
    writeMbrEntry(head, entry);
  }
  return head;
}

const asked = { diskBytes: 64 * mib, blockBytes: 512, grow: true };

test('an image with an MBR is refused on a disk of blocks that it does not count in', () => {
  const head = mbrOf([1, 10]);
  expect(fitTable({ ...asked, head })).toMatchObject({ kind: 'mbr', grown: { number: 1 } });
  expect(() => fitTable({ ...asked, head, blockBytes: 4096 })).toThrow(
    'the disk has blocks of 4096 bytes, and an MBR counts in those of 512',
  );
});

test('a partition of an MBR that lies in another does not grow', () => {
  const head = mbrOf([1, 20], [5, 20]);
  const { partitions, ...fitted } = fitTable({ ...asked, head });
  expect(fitted).toMatchObject({ notGrown: 'the last partition is in another one too' });
  expect(partitions.map(({ sizeBytes }) => sizeBytes / mib)).toEqual([19, 15]);
  expect(fitted.head).toEqual(head);
});

test('an image that ends within the header of its table is refused', () => {
  for (const length of [520, 530, 1_023]) {
    const head = new Uint8Array(length);
    head.set(Buffer.from('EFI PART'), 512);
    expect(() => fitTable({ ...asked, head })).toThrow(ImageError);
  }
});
