import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { ByteSource } from '@rackwright/disk-image';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DeviceError, type OpenRegion } from '../machine/block-devices.ts';
import { type Change, mib, noise, sha256, sourceOf, TestDisk } from './provision.fixture.ts';

// Ends within a block; zeros in the middle and at its end.
const image = Buffer.concat([noise(2 * mib + 100), Buffer.alloc(2 * mib), noise(1000, 'end')]);
image[510] = 0x55;
image[511] = 0xaa;
let disk: TestDisk;

beforeEach(() => {
  disk = new TestDisk();
});

afterEach(() => disk.remove());

const skippable = Buffer.from('502a4d1804000000ffffffff', 'hex');
const halves = [image.subarray(0, 3_000_000), image.subarray(3_000_000)] as const;

test.each([
  ['raw', image],
  ['gzip', gzipSync(image)],
  ['gzip of two members, and padding', Buffer.concat([...halves.map(zip), Buffer.alloc(10_000)])],
  ['zstd', zstdCompressSync(image)],
  ['zstd of several frames', Buffer.concat([skippable, ...halves.map(zstd), skippable])],
])('the writer puts an image onto a disk: %s', async (_, file) => {
  for (const pieceBytes of [1_000_000, 777]) {
    disk.fill();
    const told: number[] = [];
    const end = await disk.provision(file, {
      source: sourceOf(file, pieceBytes),
      image: { contentSha256: sha256(image), contentSizeBytes: image.length },
      progress: (fraction) => told.push(fraction),
    });
    expect(end).toMatchObject({
      kind: 'complete',
      installed: { sizeBytes: image.length, contentSha256: sha256(image), table: 'none' },
    });
    expect(disk.read().subarray(0, image.length).equals(image)).toBe(true);
    expect(told.toSorted((left, right) => left - right)).toEqual(told);
    expect(told.at(-1)).toBe(1);
  }
  // The part behind the image keeps nothing that could be taken for a table.
  expect(
    disk
      .read()
      .subarray(5 * mib)
      .equals(Buffer.alloc(mib)),
  ).toBe(true);
});

function zip(bytes: Uint8Array): Buffer {
  return gzipSync(bytes);
}

function zstd(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes);
}

test('images smaller than the head and as large as the disk are written', async () => {
  const small = image.subarray(0, 5_000);
  expect(await disk.provision(small)).toMatchObject({ kind: 'complete' });
  expect(disk.read().subarray(0, 5_000).equals(small)).toBe(true);
  const whole = noise(6 * mib);
  expect(await disk.provision(whole)).toMatchObject({ kind: 'complete' });
  expect(disk.read().equals(whole)).toBe(true);
});

/** Without it nothing is found on the disk. */
const firstIsZero = (): boolean => disk.read().subarray(0, 512).equals(Buffer.alloc(512));
const headIsZero = (): boolean => disk.read().subarray(0, mib).equals(Buffer.alloc(mib));
/** There is a table as well (UEFI takes the one at the end when the first is invalid). */
const endIsZero = (): boolean =>
  disk
    .read()
    .subarray(5 * mib)
    .equals(Buffer.alloc(mib));
const untouched = (): boolean => disk.read().equals(Buffer.alloc(6 * mib, 'PATTERN!'));
const cut = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length - 20);
const packed = gzipSync(image);
const whole = { sizeBytes: image.length };

test.each([
  ['wrongFormat', packed, { compression: 'zstd' }, 'declared as zstd, but is gzip'],
  ['unsupported', gzipSync(Buffer.from('514649fb00000003', 'hex')), {}, 'a compressed qcow2'],
  ['tooLarge', noise(7 * mib), { sizeBytes: 7 * mib }, 'it has 7340032 bytes, the disk 6291456'],
  ['tooLarge', gzipSync(image), { contentSizeBytes: 7 * mib }, 'larger than the disk'],
  ['tooLong', image, { sizeBytes: 100 }, 'more came than the 100 bytes'],
  ['tooLong', packed, { contentSizeBytes: 100 }, 'more than the declared 100 bytes'],
  ['tooLong', emptyQcow2(2 ** 30), { contentSizeBytes: mib }, 'not the declared 1048576'],
  ['truncated', emptyQcow2(2 ** 30), { contentSizeBytes: 2 ** 31 }, 'not the declared 2147'],
  ['tooLong', image, { ...whole, contentSizeBytes: image.length - 1 }, 'not the declared'],
  ['truncated', image, { ...whole, contentSizeBytes: image.length + 1 }, 'not the declared'],
  ['digestMismatch', image, { contentSha256: sha256(packed) }, sha256(image)],
  ['truncated', gzipSync(image.subarray(0, mib)).subarray(0, 9_000), {}, 'ends within a frame'],
  ['malformed', Buffer.from('514649fb00000003', 'hex'), {}, 'qcow2 header'],
  ['truncated', Buffer.alloc(0), {}, 'the image is empty'],
  ['truncated', gzipSync(Buffer.alloc(0)), {}, 'the image is empty'],
  ['truncated', emptyQcow2(0), {}, 'the image is empty'],
] as const)('%s is found before anything is written', async (fault, file, declared, text) => {
  const end = await disk.provision(file, { image: declared });
  const message = expect.stringContaining(text);
  expect(end).toEqual({ kind: 'failed', fault, message, begun: false });
  expect(untouched()).toBe(true);
});

test.each([
  ['digestMismatch', image, { sha256: sha256(packed) }, sha256(image)],
  ['digestMismatch', packed, { contentSha256: sha256(packed) }, sha256(image)],
  ['digestMismatch', broken(packed), { sha256: sha256(packed) }, sha256(broken(packed))],
  ['malformed', broken(packed), {}, 'the gzip file is broken'],
  ['truncated', cut(packed), { sha256: sha256(packed) }, 'ends within a frame'],
  ['truncated', cut(zstdCompressSync(image)), {}, 'ends within a frame'],
  ['truncated', image, { sizeBytes: image.length + 1 }, 'ends after'],
  ['truncated', packed, { contentSizeBytes: image.length + 1 }, 'not the declared'],
  ['tooLong', packed, { contentSizeBytes: image.length - 1 }, 'more than the declared'],
  ['malformed', Buffer.concat([zstd(image), image]), {}, 'the zstd file is broken'],
  ['tooLarge', gzipSync(noise(7 * mib)), {}, 'the disk 6291456'],
] as const)('the writer finds %s while writing, and leaves nothing bootable', async (...given) => {
  const [fault, file, declared, text] = given;
  const end = await disk.provision(file, { image: declared });
  const message = expect.stringContaining(text);
  expect(end).toEqual({ kind: 'failed', fault, message, begun: true });
  expect(headIsZero()).toBe(true);
});

test('nothing is written behind the end that an image declares, however long it is', async () => {
  const bomb = gzipSync(Buffer.concat([image.subarray(0, 2 * mib), Buffer.alloc(3 * mib)]));
  const end = await disk.provision(bomb, { image: { contentSizeBytes: 2 * mib } });
  expect(end).toMatchObject({ kind: 'failed', fault: 'tooLong', begun: true });
  const behind = disk.read().subarray(2 * mib, 5 * mib);
  expect(behind.equals(Buffer.alloc(behind.length, 'PATTERN!'))).toBe(true);
});

function broken(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.fill(0x5a, bytes.length - 5_000, bytes.length - 4_000);
  return copy;
}

test('no write begins without the agent’s permission, or if firmware cannot boot it', async () => {
  const mayBegin = async () => ({ kind: 'over' as const, reason: 'frozen' });
  expect(await disk.provision(image, { parts: { requestBegin: mayBegin } })).toEqual({
    ...{ kind: 'failed', fault: 'notPermitted', message: 'not begun: frozen', begun: false },
  });
  const end = await disk.provision(image, { plan: { firmware: 'uefi' } });
  expect(end).toMatchObject({ fault: 'notBootable', begun: false });
  const seed = { kind: 'noCloud' as const, metaData: '', userData: '' };
  const without = await disk.provision(image, { plan: { seed } });
  expect(without).toMatchObject({ fault: 'unsupported', begun: false });
  expect(untouched()).toBe(true);
  expect(await disk.provision(image, { plan: { firmware: 'bios' } })).toMatchObject({
    kind: 'complete',
  });
});

/** Counts the acts on a disk that change it, and lets `meet` stop before or look after each. */
function watched(open: OpenRegion, meet: (act: number, when: 'before' | 'after') => void) {
  let acts = 0;
  const around = async (act: () => Promise<void>): Promise<void> => {
    acts += 1;
    const number = acts;
    meet(number, 'before');
    await act();
    meet(number, 'after');
  };
  return {
    ...open,
    write: (offset: number, bytes: Uint8Array) => around(() => open.write(offset, bytes)),
    writeZeros: (offset: number, length: number) => around(() => open.writeZeros(offset, length)),
  };
}

test('a write that is cut off or fails at any point leaves no bootable disk', async () => {
  let acts = 0;
  await disk.provision(image, {
    within: (open) =>
      watched(open, (act) => {
        acts = act;
      }),
  });
  expect(acts).toBeGreaterThan(6);
  for (let last = 1; last <= acts; last += 1) {
    disk.fill();
    const heads: boolean[] = [];
    const end = await disk.provision(image, {
      within: (open) =>
        watched(open, (act, when) => {
          if (when === 'after') heads.push(firstIsZero());
          if (act === last && when === 'before') throw new DeviceError('lost');
        }),
    });
    expect(end).toMatchObject({ fault: 'ioError', message: 'lost', begun: true });
    // The first act zeroes the head.
    expect(heads.every((isZero) => isZero)).toBe(true);
    expect(headIsZero()).toBe(last > 1);
  }
});

const full = noise(6 * mib);

test.each<[string, Partial<Change>]>([
  ['a file of another digest', { image: { sha256: sha256(image) } }],
  ['other content than was declared', { image: { contentSha256: sha256(image) } }],
])('%s leaves nothing at either end, though it is as long as the disk', async (_, change) => {
  const file = zstd(full);
  const heads: boolean[] = [];
  const end = await disk.provision(file, {
    ...change,
    within: (open) =>
      watched(open, (act, when) => {
        // The first two acts zero the ends.
        if (when === 'after' && act > 1) heads.push(headIsZero() && endIsZero());
      }),
  });
  expect(end).toMatchObject({ fault: 'digestMismatch', begun: true });
  expect(heads.length).toBeGreaterThan(4);
  expect(heads.every((isZero) => isZero)).toBe(true);
});

test('a failure at the last writes leaves both ends of the disk zero', async () => {
  let acts = 0;
  const count = (open: OpenRegion) => watched(open, (act) => void (acts = act));
  expect(await disk.provision(full, { within: count })).toMatchObject({ kind: 'complete' });
  // The end, and then the first blocks.
  for (let last = acts - 2; last <= acts; last += 1) {
    disk.fill();
    const end = await disk.provision(full, {
      within: (open) =>
        watched(open, (act, when) => {
          if (act === last && when === 'after') throw new DeviceError('lost');
        }),
    });
    expect(end).toMatchObject({ fault: 'ioError', message: 'lost', begun: true });
    expect([headIsZero(), endIsZero()]).toEqual([true, true]);
  }
});

test('until the file is read to its end the disk is unbootable', async () => {
  const file = zstd(full);
  const heads: boolean[] = [];
  const source: ByteSource = {
    open: async (from, signal) => {
      const opened = await sourceOf(file.subarray(0, file.length - 1)).open(from, signal);
      async function* chunks() {
        yield* opened.chunks;
        heads.push(headIsZero() && endIsZero());
        yield file.subarray(file.length - 1);
      }
      return { ...opened, chunks: chunks() };
    },
  };
  expect(await disk.provision(file, { source })).toMatchObject({ kind: 'complete' });
  expect(heads).toEqual([true]);
  expect(disk.read().equals(full)).toBe(true);
});

test('the first block is written alone, when all else was read back', async () => {
  const acts: string[] = [];
  const end = await disk.provision(image, {
    within: (open) => ({
      ...open,
      write: (offset, bytes) => {
        if (offset < mib) acts.push(`write ${bytes.length} at ${offset}`);
        return open.write(offset, bytes);
      },
      read: (offset, length) => {
        if (offset < mib) acts.push(`read ${length} at ${offset}`);
        return open.read(offset, length);
      },
    }),
  });
  expect(end).toMatchObject({ kind: 'complete' });
  const [rest, first] = [`${mib - 512} at 512`, '512 at 0'];
  expect(acts.slice(-4)).toEqual([
    `write ${rest}`,
    `read ${rest}`,
    `write ${first}`,
    `read ${first}`,
  ]);
});

test('a cancelled write stops where it can, and leaves an unbootable disk', async () => {
  for (const at of [0, 0.2, 0.7]) {
    disk.fill();
    const stop = new AbortController();
    const progress = (fraction: number) => {
      if (fraction >= at) stop.abort();
    };
    if (at === 0) stop.abort();
    const end = await disk.provision(image, { signal: stop.signal, progress });
    expect(end).toMatchObject({ kind: 'failed', fault: 'cancelled', begun: at > 0 });
    expect(at > 0 ? headIsZero() : untouched()).toBe(true);
  }
});

test('a disk that lies about writes or zeros fails the step', async () => {
  const lying = { zeroOut: async () => [] };
  disk.remove();
  disk = new TestDisk(24 * mib);
  const sparse = Buffer.concat([noise(mib), Buffer.alloc(20 * mib), noise(mib)]);
  const end = await disk.provision(sparse, { within: (open) => ({ ...open, ...lying }) });
  expect(end).toMatchObject({ fault: 'notReadBack', begun: true });
  expect(headIsZero()).toBe(true);
  disk.remove();
  disk = new TestDisk(6 * mib, { faults: [{ kind: 'lying', operation: 'write' }] });
  const other = await disk.provision(image);
  expect(other).toMatchObject({ fault: 'notReadBack', message: expect.stringContaining('zeros') });
});

test('a disk that lies only at the last comparison is left unbootable', async () => {
  let reads = 0;
  const lying = (open: OpenRegion): OpenRegion => ({
    ...open,
    read: async (offset, length) => {
      const bytes = await open.read(offset, length);
      if (offset !== 0 || !disk.read().subarray(0, 512).equals(image.subarray(0, 512)))
        return bytes;
      reads += 1;
      const changed = bytes.slice();
      changed[300] = (changed[300] ?? 0) ^ 1;
      return changed;
    },
  });
  const end = await disk.provision(image, { within: lying });
  expect(reads).toBe(1);
  const message = expect.stringContaining('the disk gives back something else');
  expect(end).toEqual({ kind: 'failed', fault: 'notReadBack', message, begun: true });
  expect(headIsZero()).toBe(true);
});

test('long runs of zeros are made by the device, or written if it refuses', async () => {
  const sparse = Buffer.concat([noise(mib), Buffer.alloc(20 * mib), noise(mib)]);
  for (const refuses of [true, false]) {
    disk.remove();
    disk = new TestDisk(24 * mib);
    const zeroed: number[] = [];
    const written: number[] = [];
    const end = await disk.provision(sparse, {
      within: (open) => ({
        ...open,
        write: (offset, bytes) => {
          written.push(offset / mib);
          return open.write(offset, bytes);
        },
        zeroOut: async (offset, length) => {
          zeroed.push(offset / mib, length / mib);
          if (refuses) throw new DeviceError('it cannot');
          return await open.discard(offset, length);
        },
      }),
    });
    expect(end).toMatchObject({ kind: 'complete' });
    expect(zeroed).toEqual([1, 20]);
    expect(written).toEqual([21, 512 / mib, 0]);
    expect(disk.read().subarray(0, sparse.length).equals(sparse)).toBe(true);
  }
});

test('bytes in an image that look like another format are content', async () => {
  const file = Buffer.from(image);
  for (let at = 4096; at < 2 * mib; at += 4096) file.write('514649fb00000003', at, 'hex');
  const end = await disk.provision(gzipSync(file), { image: { contentSha256: sha256(file) } });
  expect(end).toMatchObject({ kind: 'complete', installed: { contentSha256: sha256(file) } });
});

test('a disk too small for the head and its end takes no image, however small', async () => {
  const small = image.subarray(0, 5_000);
  for (const [sizeBytes, kind] of [
    [2 * mib - 512, 'failed'],
    [2 * mib, 'complete'],
  ] as const) {
    disk.remove();
    disk = new TestDisk(sizeBytes);
    expect(await disk.provision(small)).toMatchObject({ kind });
  }
});

/** A qcow2 file that holds nothing: two clusters, header and table. */
function emptyQcow2(sizeBytes: number): Buffer {
  const clusterBits = 16;
  const entries = Math.ceil(sizeBytes / 2 ** (2 * clusterBits - 3));
  const file = Buffer.alloc(2 * 2 ** clusterBits);
  file.write('QFI\xfb', 'latin1');
  file.writeUInt32BE(2, 4);
  file.writeUInt32BE(clusterBits, 20);
  file.writeBigUInt64BE(BigInt(sizeBytes), 24);
  file.writeUInt32BE(entries, 36);
  file.writeBigUInt64BE(BigInt(2 ** clusterBits), 40);
  return file;
}

test.each(['writing', 'readBack'] as const)(
  'a disk that is pulled at %s never counts, and its head is never written',
  async (when) => {
    disk.fill();
    const before = disk.read().subarray(0, mib);
    const reached = (point: string): void => {
      if (point === when) rmSync(join(disk.folder, 'd.json'), { force: true });
    };
    const end = await disk.provision(image, { parts: { reached } });
    expect(end).toMatchObject({ kind: 'failed', begun: true });
    expect(disk.read().subarray(0, mib).equals(image.subarray(0, mib))).toBe(false);
    expect(before.equals(image.subarray(0, mib))).toBe(false);
  },
);

test('a cancellation takes effect within a run of zeros that would take an hour', async () => {
  const sizeBytes = 4 * 2 ** 40;
  disk.sparse(sizeBytes);
  const stop = new AbortController();
  const reached = (point: string): void => {
    if (point === 'writing') setImmediate(() => stop.abort());
  };
  const { signal } = stop;
  const end = await disk.provision(emptyQcow2(sizeBytes), { signal, parts: { reached } });
  expect(end).toMatchObject({ kind: 'failed', fault: 'cancelled', begun: true });
});

test('the writer reports how far it is within a run of zeros that takes long', async () => {
  const sizeBytes = 64 * mib;
  disk.sparse(sizeBytes);
  const told = new Set<number>();
  const end = await disk.provision(emptyQcow2(sizeBytes), {
    progress: (fraction, what) => what === 'writing' && told.add(fraction),
    within: (open) => ({ ...open, zeroOut: (offset, length) => open.discard(offset, length) }),
  });
  expect(end).toMatchObject({ kind: 'complete' });
  expect(told.size).toBeGreaterThan(3);
});

test('the device makes zeros in pieces, and a cancellation takes effect between them', async () => {
  const sizeBytes = 1024 * mib;
  disk.sparse(sizeBytes);
  const stop = new AbortController();
  const zeroed: number[] = [];
  const end = await disk.provision(emptyQcow2(sizeBytes), {
    signal: stop.signal,
    within: (open) => ({
      ...open,
      zeroOut: async (offset, length) => {
        zeroed.push(offset / mib, length / mib);
        if (zeroed.length === 4) stop.abort();
        return [];
      },
    }),
  });
  expect(end).toMatchObject({ kind: 'failed', fault: 'cancelled' });
  expect(zeroed).toEqual([1, 256, 257, 256]);
});
