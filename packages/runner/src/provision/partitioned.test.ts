/** An image with a GUID table: it grows, gets first-boot data, and is read back all over. */
import { crc32 } from 'node:zlib';
import type { Seed } from '@rackwright/disk-image';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DeviceError, type OpenRegion } from '../machine/block-devices.ts';
import { mib, TestDisk } from './provision.fixture.ts';

const diskBytes = 20 * mib;
const block = 512;
const seed: Seed = { kind: 'noCloud', metaData: 'instance-id: i-7\n', userData: '#cloud-config\n' };
const efiSystemType = '28732ac11ff8d211ba4b00a0c93ec93b';
const linuxType = 'af3dc60f838472478e793d69d8477de4';

interface Part {
  readonly type: string;
  readonly name: string;
  /** MiB. */
  readonly from: number;
  readonly to: number;
}

const parts: readonly Part[] = [
  { type: efiSystemType, name: 'esp', from: 1, to: 2 },
  { type: linuxType, name: 'root', from: 2, to: 4 },
];

/** An image of 4 MiB with these partitions; blocks of 512 bytes. */
function gptImage(partitions: readonly Part[] = parts): Buffer {
  const image = Buffer.alloc(4 * mib, 'CONTENT ');
  image.fill(0, 0, mib);
  image.set([0x55, 0xaa], 510);
  image.set([0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], 446);
  const entries = image.subarray(2 * block, 34 * block);
  for (const [index, { type, name, from, to }] of partitions.entries()) {
    const entry = entries.subarray(index * 128, (index + 1) * 128);
    entry.write(type, 'hex');
    entry.fill(index + 1, 16, 32);
    entry.writeBigUInt64LE(BigInt((from * mib) / block), 32);
    entry.writeBigUInt64LE(BigInt((to * mib) / block - 1), 40);
    entry.write(name, 56, 'utf16le');
  }
  const header = image.subarray(block, block + 92);
  header.write('EFI PART', 'latin1');
  header.writeUInt32LE(0x10000, 8);
  header.writeUInt32LE(92, 12);
  for (const [at, value] of [
    [24, 1],
    [32, (4 * mib) / block - 1],
    [40, 34],
    [48, (4 * mib) / block - 34],
    [72, 2],
  ] as const) {
    header.writeBigUInt64LE(BigInt(value), at);
  }
  header.writeUInt32LE(128, 80);
  header.writeUInt32LE(128, 84);
  header.writeUInt32LE(crc32(entries), 88);
  header.writeUInt32LE(crc32(header), 16);
  return image;
}

let disk: TestDisk;

beforeEach(() => {
  disk = new TestDisk(diskBytes);
});

afterEach(() => disk.remove());

const text = (from: number, to: number): string =>
  disk.read().subarray(from, to).toString('latin1');

test('the last partition grows, first-boot data stands behind it, both tables say so', async () => {
  const plan = { seed, firmware: 'uefi' as const };
  const end = await disk.provision(gptImage(), { plan });
  if (end.kind !== 'complete') throw new Error(end.message);
  const { installed } = end;
  expect(installed).toMatchObject({
    table: 'gpt',
    sizeBytes: 4 * mib,
    efiSystem: { number: 1, offsetBytes: mib, sizeBytes: mib },
    grown: { number: 2 },
    seed: { number: 3, name: 'cidata', sizeBytes: 8 * mib },
  });
  expect(installed).not.toHaveProperty('notGrown');
  expect(installed.partitions.map(({ name }) => name)).toEqual(['esp', 'root', 'cidata']);
  const { offsetBytes = 0 } = installed.seed ?? {};
  const root = installed.partitions[1];
  expect((root?.offsetBytes ?? 0) + (root?.sizeBytes ?? 0)).toBe(offsetBytes);
  expect(text(offsetBytes, offsetBytes + 8 * mib)).toContain('instance-id: i-7');
  expect(text(diskBytes - block, diskBytes - block + 8)).toBe('EFI PART');
  expect(text(block, block + 8)).toBe('EFI PART');
});

test('without growth and first-boot data the result names neither', async () => {
  const end = await disk.provision(gptImage([{ ...parts[1], from: 1 } as Part]), {
    plan: { grow: false },
  });
  if (end.kind !== 'complete') throw new Error(end.message);
  expect(end.installed.partitions).toHaveLength(1);
  expect(end.installed).not.toHaveProperty('seed');
  expect(end.installed).not.toHaveProperty('grown');
  expect(end.installed).not.toHaveProperty('efiSystem');
  expect(typeof end.installed.notGrown).toBe('string');
});

/** A disk that stores another byte than the given one, where `isPlace` is true. */
function wrongAt(isPlace: (offset: number) => boolean) {
  return (open: OpenRegion): OpenRegion => ({
    ...open,
    write: (offset, bytes) => {
      if (!isPlace(offset)) return open.write(offset, bytes);
      const other = bytes.slice();
      other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
      return open.write(offset, other);
    },
  });
}

const headIsZero = (): boolean => disk.read().subarray(0, mib).equals(Buffer.alloc(mib));

test.each([
  ['the table at the end', (offset: number) => offset > 19 * mib],
  ['first-boot data', (offset: number) => offset > 10 * mib && offset < 11.5 * mib],
  ['the content', (offset: number) => offset === 2 * mib],
])('a disk that keeps %s wrongly does not count', async (_, isPlace) => {
  const end = await disk.provision(gptImage(), { plan: { seed }, within: wrongAt(isPlace) });
  expect(end).toMatchObject({ kind: 'failed', fault: 'notReadBack', begun: true });
  expect(headIsZero()).toBe(true);
});

/** A disk of fewer MiB than it reports: bytes behind them wrap to their beginning. */
function smaller(sizeMib: number) {
  const at = (offset: number): number => offset % (sizeMib * mib);
  return (open: OpenRegion): OpenRegion => ({
    ...open,
    read: (offset, length) => open.read(at(offset), length),
    readInto: (offset, target) => open.readInto(at(offset), target),
    write: (offset, bytes) => open.write(at(offset), bytes),
    writeZeros: (offset, length) => open.writeZeros(at(offset), length),
  });
}

test.each([
  ['content', 17, 19 * mib],
  ['head', 19, 0],
])('a disk whose end is the place of its %s does not count', async (_, sizeMib, place) => {
  const end = await disk.provision(gptImage(), { within: smaller(sizeMib) });
  const message = `zeros written at ${place} are not read back`;
  expect(end).toEqual({ kind: 'failed', fault: 'notReadBack', message, begun: true });
  expect(text(block, block + 8)).not.toBe('EFI PART');
});

/** The head cannot be written, and taking it back fails so. */
function failsAtHead(again: Error) {
  let heads = 0;
  return (open: OpenRegion): OpenRegion => ({
    ...open,
    write: async (offset, bytes) => {
      if (offset !== 0) return open.write(offset, bytes);
      heads += 1;
      throw new DeviceError('the head cannot be written');
    },
    writeZeros: async (offset, length) => {
      if (heads > 0) throw again;
      return open.writeZeros(offset, length);
    },
  });
}

test('a disk that fails again when its head is removed reports the first failure', async () => {
  const within = failsAtHead(new DeviceError('nor zeros'));
  const end = await disk.provision(gptImage(), { within });
  expect(end).toMatchObject({ fault: 'ioError', message: 'the head cannot be written' });
});

test('a fault of ours during the removal of the head is reported as such', async () => {
  const within = failsAtHead(new TypeError('a fault of ours'));
  await expect(disk.provision(gptImage(), { within })).rejects.toThrow('a fault of ours');
});

test('a fault of ours is not taken for one of the image or the disk', async () => {
  for (const broken of ['write', 'writeZeros', 'read', 'flush'] as const) {
    const within = (open: OpenRegion): OpenRegion => ({
      ...open,
      [broken]: () => Promise.reject(new TypeError('a fault of ours')),
    });
    await expect(disk.provision(gptImage(), { within })).rejects.toThrow('a fault of ours');
  }
});
