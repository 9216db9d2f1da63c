/** The division of content into the head and the written part, on a disk in memory. */
import { type Content, ImageError } from '@rackwright/disk-image';
import { callersHashes } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import type { OpenRegion } from '../machine/block-devices.ts';
import { DiskWriter, headBytes, type ImageDisk, writeAndCompare } from './disk-writer.ts';
import { mib, noise, sha256 } from './provision.fixture.ts';

const never = new AbortController().signal;

/** A disk in memory that nobody can look at, full of a pattern. */
function memoryDisk(sizeBytes: number): ImageDisk & { readonly bytes: Buffer } {
  const bytes = Buffer.alloc(sizeBytes, 'PATTERN!');
  const open: OpenRegion = {
    read: async (offset, length) => Uint8Array.from(bytes.subarray(offset, offset + length)),
    readInto: async (offset, target) => {
      target.set(bytes.subarray(offset, offset + target.length));
    },
    write: async (offset, some) => bytes.set(some, offset),
    writeZeros: async (offset, length) => {
      bytes.fill(0, offset, offset + length);
    },
    discard: () => Promise.reject(new Error('nobody asks for this')),
    flush: async () => {},
  };
  return { open, sizeBytes, blockBytes: 512, bytes };
}

const image = noise(3 * mib + 700);

test.each<[string, Content, Buffer]>([
  ['bytes', { kind: 'bytes', bytes: image }, image],
  ['zeros', { kind: 'zeros', length: 3 * mib }, Buffer.alloc(3 * mib)],
])('one piece of %s that is longer than the head loses nothing', async (_, content, whole) => {
  const disk = memoryDisk(5 * mib);
  const writer = new DiskWriter(disk, undefined, callersHashes, never, () => {});
  const rest = writer.fillHead(content);
  expect([writer.sizeBytes, writer.headIsFull]).toEqual([headBytes, true]);
  expect(disk.bytes.subarray(0, 8).toString()).toBe('PATTERN!');
  if (rest === undefined) throw new Error('something is left of the piece');
  await writer.add(rest);
  expect(await writer.finish()).toEqual({
    ...{ sizeBytes: whole.length, sha256: sha256(whole), tail: [] },
  });
  expect(whole.subarray(0, headBytes).equals(writer.head)).toBe(true);
  const behind = disk.bytes.subarray(headBytes, whole.length);
  expect(behind.equals(whole.subarray(headBytes))).toBe(true);
  // The rest of its last block is zeros, and later blocks are unchanged.
  const end = Math.ceil(whole.length / 512) * 512;
  expect(disk.bytes.subarray(whole.length, end).every((byte) => byte === 0)).toBe(true);
  expect(disk.bytes.subarray(end, end + 8).toString()).toBe('PATTERN!');
  await writer.waitUntilSettled();
});

test('bytes in the end of the disk are kept, however the disk ends', async () => {
  for (const sizeBytes of [4 * mib, 4 * mib - 512 * 5, 3 * mib + 1024]) {
    const disk = memoryDisk(sizeBytes);
    const writer = new DiskWriter(disk, undefined, callersHashes, never, () => {});
    const rest = writer.fillHead({ kind: 'bytes', bytes: image });
    if (rest === undefined) throw new Error('something is left of the piece');
    await writer.add(rest);
    const { tail, sha256: found } = await writer.finish();
    const from = sizeBytes - headBytes;
    expect(found).toBe(sha256(image));
    expect(disk.bytes.subarray(headBytes, from).equals(image.subarray(headBytes, from))).toBe(true);
    expect(disk.bytes.subarray(from).equals(Buffer.alloc(headBytes, 'PATTERN!'))).toBe(true);
    expect(tail[0]?.offset).toBe(from);
    for (const { offset, bytes } of tail) await writeAndCompare(disk, offset, bytes);
    expect(disk.bytes.subarray(from, image.length).equals(image.subarray(from))).toBe(true);
    await writer.waitUntilSettled();
  }
});

test('content that is longer than the disk is refused before any more is written', async () => {
  const disk = memoryDisk(2 * mib);
  const writer = new DiskWriter(disk, undefined, callersHashes, never, () => {});
  writer.fillHead({ kind: 'zeros', length: headBytes });
  const content: Content = { kind: 'zeros', length: mib + 1 };
  await expect(writer.add(content)).rejects.toBeInstanceOf(ImageError);
  await writer.waitUntilSettled();
  expect(disk.bytes.equals(Buffer.alloc(2 * mib, 'PATTERN!'))).toBe(true);
});

test('a disk that cannot be probed for zeros is written and compared all the same', async () => {
  const disk = memoryDisk(4 * mib);
  const bytes = image.subarray(0, 2 * mib + 512);
  await writeAndCompare(disk, 512, bytes);
  expect(disk.bytes.subarray(512, 512 + bytes.length).equals(bytes)).toBe(true);
});
