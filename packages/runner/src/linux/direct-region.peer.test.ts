/** Direct access and blkdiscard on a real block device: a loop device over a file of our own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeExec } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DirectRegion, openDirect } from './direct-region.ts';

const mib = 1024 * 1024;
const exec = nodeExec(undefined, 'ours');
let folder = '';
let loop = '';
let missing: string | undefined;
const open: DirectRegion[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-loop-'));
  writeFileSync(join(folder, 'image'), Buffer.alloc(4 * mib, 'PATTERN!'));
  if (process.getuid?.() !== 0) {
    missing = 'not root';
    return;
  }
  try {
    const args = ['--find', '--show', join(folder, 'image')];
    loop = execFileSync('losetup', args, { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    missing = 'no loop device can be made here';
  }
});

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
  if (loop !== '') execFileSync('losetup', ['--detach', loop]);
  loop = '';
  rmSync(folder, { recursive: true });
});

async function openLoop(): Promise<DirectRegion> {
  const region = await openDirect(loop, exec);
  open.push(region);
  return region;
}

test('a region reads and writes directly, and refuses a second opener', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const region = await openLoop();
  expect(
    Buffer.from(await region.read(4096, 4096))
      .subarray(0, 8)
      .toString(),
  ).toBe('PATTERN!');
  await region.write(8192, new Uint8Array(4096).fill(7));
  await region.writeZeros(mib, mib);
  await region.flush();
  expect((await region.read(8192, 4096)).every((byte) => byte === 7)).toBe(true);
  expect((await region.read(mib, mib)).every((byte) => byte === 0)).toBe(true);
  await expect(openDirect(loop, exec)).rejects.toThrow(/EBUSY/);
});

test('a region discards while it holds the device', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const region = await openLoop();
  const lines = await region.discard(0, 4 * mib);
  expect(lines[0]).toMatch(/^blkdiscard .*: exit 0$/);
  await region.flush();
  expect((await region.read(2 * mib, 4096)).every((byte) => byte === 0)).toBe(true);
  expect(readFileSync(join(folder, 'image')).every((byte) => byte === 0)).toBe(true);
});

test('a region has the device make zeros while it holds it', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const region = await openLoop();
  const lines = await region.zeroOut?.(mib, 2 * mib);
  expect(lines?.[0]).toMatch(/^blkdiscard .*--zeroout.*: exit 0$/);
  await region.flush();
  expect((await region.read(mib, mib)).every((byte) => byte === 0)).toBe(true);
  expect((await region.read(2 * mib, mib)).every((byte) => byte === 0)).toBe(true);
  for (const offset of [0, 3 * mib]) {
    expect((await region.read(offset, mib)).some((byte) => byte === 0)).toBe(false);
  }
});

test('a region gives the device’s own words when it fails', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const region = await openLoop();
  // The file behind it is truncated: the part beyond cannot be read.
  truncateSync(join(folder, 'image'), mib);
  await expect(region.read(3 * mib, 4096)).rejects.toThrow(/read of 4096 bytes at 3145728/);
  await expect(region.read(100, 4096)).rejects.toThrow(/EINVAL/);
  await expect(openDirect('/dev/no-such-disk', exec)).rejects.toThrow(/ENOENT/);
});
