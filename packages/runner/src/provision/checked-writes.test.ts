import { expect, test } from 'vitest';
import { transfersInFlight } from '../erase/transfers.ts';
import { DeviceError, type OpenRegion, transferBytesMax } from '../machine/block-devices.ts';
import { CheckedWrites } from './checked-writes.ts';
import { Probes, probeBytes } from './probes.ts';

const mib = transferBytesMax;
/** Transfers of two batches, and one more: the first batch was read back before it is filled. */
const twoBatches = 64;

interface Memory {
  readonly open: OpenRegion;
  readonly bytes: Buffer;
  readonly acts: string[];
}

/** A disk in memory; `meet` is called with each write before it is made. */
function memoryDisk(sizeBytes: number, meet: (at: number, bytes: Buffer) => void): Memory {
  const bytes = Buffer.alloc(sizeBytes);
  const acts: string[] = [];
  const none = () => Promise.reject(new Error('nobody asks for this'));
  const open: OpenRegion = {
    read: none,
    readInto: async (offset, target) => {
      acts.push(`read ${offset / mib}`);
      target.set(bytes.subarray(offset, offset + target.length));
    },
    write: async (offset, some) => {
      acts.push(`write ${offset / mib}`);
      meet(offset / mib, bytes);
      bytes.set(some, offset);
    },
    writeZeros: none,
    discard: none,
    flush: async () => void acts.push('flush'),
  };
  return { open, bytes, acts };
}

const never = new AbortController().signal;

/** Writes so many transfers, each full of its number. */
async function writeAll(writes: CheckedWrites, count: number): Promise<void> {
  for (let number = 1; number <= count; number += 1) {
    const { bytes } = await writes.free();
    bytes.fill(number);
    await writes.write(number * mib, mib);
  }
  await writes.finish();
}

test('each batch is read back after the flush that follows it, before the end', async () => {
  const count = twoBatches + 6;
  const disk = memoryDisk((count + 1) * mib, () => {});
  let readBack = 0;
  const writes = new CheckedWrites(disk.open, never, (bytes) => {
    readBack += bytes;
  });
  await writeAll(writes, count);
  expect(readBack).toBe(count * mib);
  const at = (act: string): number => disk.acts.indexOf(act);
  for (const [first, last] of [
    [1, 32],
    [33, 64],
    [65, 70],
  ] as const) {
    const flush = disk.acts.indexOf('flush', at(`write ${last}`));
    expect(flush).toBeGreaterThan(at(`write ${last}`));
    expect(at(`read ${first}`)).toBeGreaterThan(flush);
  }
  expect(at('read 1')).toBeLessThan(at('write 65'));
});

test('a wrong read-back is found, and writing stops within two batches', async () => {
  const count = 200;
  const disk = memoryDisk((count + 1) * mib, (at, bytes) => {
    // The last of its batch to be written: one bit of the first is lost.
    if (at === 32) bytes[mib + 77] = 99;
  });
  const writes = new CheckedWrites(disk.open, never, () => {});
  const problem = 'the disk gives back something else than written: 1048576 bytes at 1048576';
  await expect(writeAll(writes, count)).rejects.toThrow(problem);
  await writes.waitUntilSettled();
  expect(disk.acts.filter((act) => act.startsWith('write')).length).toBeLessThanOrEqual(64);
});

test('damage by a later write to verified bytes is found', async () => {
  const count = twoBatches + 10;
  const disk = memoryDisk((count + 1) * mib, (at, bytes) => {
    if (at === twoBatches + 5) bytes.fill(0, 5 * mib, 8 * mib);
  });
  const writes = new CheckedWrites(disk.open, never, () => {});
  await expect(writeAll(writes, count)).rejects.toThrow('something else than written: 4096 bytes');
  expect(disk.acts.indexOf('read 5')).toBeLessThan(disk.acts.indexOf(`write ${twoBatches + 5}`));
});

test('a write that fails is heard of, and nothing is under way afterwards', async () => {
  let underWay = 0;
  const disk = memoryDisk(10 * mib, () => {});
  const open: OpenRegion = {
    ...disk.open,
    write: async (offset, some) => {
      underWay += 1;
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
      if (offset === 2 * mib) throw new DeviceError('lost');
      await disk.open.write(offset, some);
    },
  };
  const writes = new CheckedWrites(open, never, () => {});
  await expect(writeAll(writes, 9)).rejects.toThrow('lost');
  await writes.waitUntilSettled();
  expect(underWay).toBe(0);
});

test('several writes are under way at once, and no more than the disk is to hold', async () => {
  let underWay = 0;
  let most = 0;
  const disk = memoryDisk(41 * mib, () => {});
  const open: OpenRegion = {
    ...disk.open,
    write: async (offset, some) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
      await disk.open.write(offset, some);
    },
  };
  await writeAll(new CheckedWrites(open, never, () => {}), 40);
  expect(most).toBe(transfersInFlight);
});

test('a bounded number of evenly spread probes is kept, whatever was written', () => {
  const probes = new Probes();
  const transfer = new Uint8Array(mib);
  for (let number = 1; number <= 1_000; number += 1) {
    transfer.fill(number % 251);
    probes.note(number * mib, transfer);
  }
  probes.noteZeros(1_001 * mib, 4 * 1024 * 1024 * mib);
  const all = probes.all();
  expect(all.length).toBeGreaterThan(250);
  expect(all.length).toBeLessThanOrEqual(512);
  const gaps = all.slice(1).map(({ offset }, index) => offset - (all[index]?.offset ?? 0));
  const whole = 1_001 * mib + 4 * 1024 * 1024 * mib;
  expect(Math.max(...gaps)).toBeLessThanOrEqual(whole / 250);
  expect(all.every(({ offset }) => offset % probeBytes === 0)).toBe(true);
});
