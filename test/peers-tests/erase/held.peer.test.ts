/** The runner's erasure on real block devices, which are detached and replaced meanwhile. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agent } from '@rackwright/messages';
import { type BlockDevices, eraseDevices } from '@rackwright/runner';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eraseEverything } from '../../erase-order.ts';
import { LoopDisks, noLoops } from '../../loop-disks.ts';

const mib = 1024 * 1024;
const sizeBytes = 4 * mib;
const missing = noLoops(tmpdir());
let loops: LoopDisks;

beforeEach(() => {
  if (missing === undefined) loops = new LoopDisks(tmpdir());
});

afterEach(() => {
  if (missing === undefined) loops.remove();
});

/** A file that no order names, full of what must survive. */
function foreign(): { readonly path: string; readonly content: Buffer } {
  const path = join(loops.folder, 'foreign.img');
  const content = Buffer.alloc(sizeBytes, 'FOREIGN!');
  writeFileSync(path, content);
  return { path, content };
}

/** Takes the file behind a loop device away and puts another one behind it. */
function swap(path: string, file: string): void {
  execFileSync('losetup', ['--detach', path]);
  execFileSync('losetup', [path, file], { stdio: 'pipe' });
}

test.for(['overwrite', 'discard'] as const)(
  'an erasure by our code holds on real devices: %s',
  async (method, context) => {
    if (missing !== undefined) context.skip(missing);
    const disks = [loops.add(sizeBytes), loops.add(sizeBytes + 512)];
    for (const { file } of disks) {
      writeFileSync(file, Buffer.alloc(readFileSync(file).length, 'PATTERN!'));
    }
    const end = await eraseEverything(eraseDevices, loops.devices(), method);
    expect(end.result).toEqual({ kind: 'complete' });
    for (const { file } of disks) expect(readFileSync(file).every((byte) => byte === 0)).toBe(true);
    expect(end.evidence?.devices?.[1]?.bytesRead).toBe(BigInt(sizeBytes + 512));
  },
);

test('a device that was attached between plan and hold is never written', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const [first, second] = [loops.add(sizeBytes), loops.add(sizeBytes)];
  const { path, content } = foreign();
  const real = loops.devices();
  const devices: BlockDevices = {
    ...real,
    hold: async (device, access) => {
      // The disk of before, of the same size and with the same serial, is another one.
      if (device.name === second.name) swap(second.path, path);
      return await real.hold(device, access);
    },
  };
  const end = await eraseEverything(eraseDevices, devices, 'overwrite');
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceChanged' });
  expect(readFileSync(path)).toEqual(content);
  const verdicts = end.evidence?.devices?.map(({ verdict, loss }) => [verdict, loss]);
  expect(verdicts).toEqual([
    [agent.VerdictKind.ERASED, undefined],
    [agent.VerdictKind.UNVERIFIED, agent.DeviceLoss.CHANGED],
  ]);
  expect(readFileSync(first.file).every((byte) => byte === 0)).toBe(true);
});

test('a held device cannot be swapped while others are erased', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const [, second] = [loops.add(sizeBytes), loops.add(sizeBytes)];
  writeFileSync(second.file, Buffer.alloc(sizeBytes, 'PATTERN!'));
  const { path, content } = foreign();
  let refused = '';
  const stage = async (identity: string, reached: string): Promise<void> => {
    if (identity !== 'LOOP-vda' || reached !== 'begun') return;
    try {
      swap(second.path, path);
    } catch (error) {
      refused = String(error);
    }
  };
  const end = await eraseEverything(eraseDevices, loops.devices(), 'overwrite', {
    recordStage: stage,
  });
  // The kernel lets go of a held loop device only when it is closed.
  expect(refused).toMatch(/busy/i);
  expect(readFileSync(path)).toEqual(content);
  expect(end.result).toEqual({ kind: 'complete' });
  expect(readFileSync(second.file).every((byte) => byte === 0)).toBe(true);
});

test('the runner refuses a device that somebody else uses', async (context) => {
  if (missing !== undefined) context.skip(missing);
  const disk = loops.add(sizeBytes);
  const devices = loops.devices();
  const [device] = (await devices.list()).devices;
  if (device === undefined) throw new Error('no device');
  const held = await devices.hold(device, 'write');
  const end = await eraseEverything(eraseDevices, devices, 'overwrite');
  await held.close();
  expect(end.result).toMatchObject({ kind: 'failed', type: 'ioError' });
  expect(end.result).toHaveProperty('message', expect.stringMatching(/EBUSY/));
  expect(disk.name).toBe(device.name);
});

test('the runner opens for reading so that nothing can be written', async (context) => {
  if (missing !== undefined) context.skip(missing);
  loops.add(sizeBytes);
  const devices = loops.devices();
  const [device] = (await devices.list()).devices;
  if (device === undefined) throw new Error('no device');
  const held = await devices.hold(device, 'read');
  const [region] = held.regions;
  await expect(region?.writeZeros(0, 4096)).rejects.toThrow(/EBADF/);
  expect((await region?.read(0, 4096))?.length).toBe(4096);
  await held.close();
});

test('the runner leaves a loop device attached that is another test’s by now', (context) => {
  if (missing !== undefined) context.skip(missing);
  const [mine, theirs] = [new LoopDisks(tmpdir()), new LoopDisks(tmpdir())];
  const { path } = mine.add(sizeBytes);
  const file = join(theirs.folder, 'vda.img');
  writeFileSync(file, Buffer.alloc(sizeBytes));
  swap(path, file);
  mine.remove();
  const shown = () => execFileSync('losetup', ['--noheadings', '--output', 'BACK-FILE', path]);
  expect(String(shown()).trim()).toBe(file);
  execFileSync('losetup', ['--detach', path]);
  theirs.remove();
});
