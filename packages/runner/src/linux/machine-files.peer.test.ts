/** Files on a partition of a real block device: a loop device over a file of our own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { DeviceFacts } from '@rackwright/erasure';
import { nodeExec } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileError, type Filesystem, type NumberedPartition } from '../machine/files.ts';
import { linuxFiles } from './machine-files.ts';
import { realRoots } from './sys-roots.ts';

const exec = nodeExec(undefined, 'ours');
const file = { content: Buffer.from('hello\n'), mode: 0o640 };
let folder = '';
let loop = '';
let missing: string | undefined;

const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-files-'));
  missing = undefined;
  if (process.getuid?.() !== 0) missing = 'not root';
  writeFileSync(join(folder, 'image'), Buffer.alloc(64 * 1024 * 1024));
});

afterEach(() => {
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8').includes(folder);
  if (mounted) run('umount', [join(folder, 'mount')]);
  if (loop !== '') run('losetup', ['--detach', loop]);
  loop = '';
  rmSync(folder, { recursive: true });
  if (mounted) throw new Error('the step left its disk mounted');
});

/** A loop device that /sys, made for the test, shows as the second partition of a disk. */
function makeDisk(filesystem: Filesystem): string | undefined {
  if (missing !== undefined) return missing;
  if (!readFileSync('/proc/filesystems', 'utf8').includes(`\t${filesystem}\n`)) {
    return `no ${filesystem} in this kernel`;
  }
  try {
    loop = run('losetup', ['--find', '--show', join(folder, 'image')]).trim();
    run(`mkfs.${filesystem}`, [...(filesystem === 'ext4' ? ['-q'] : []), loop]);
  } catch (error) {
    return `no ${filesystem} on a loop device here: ${String(error).split('\n')[0]}`;
  }
  const partition = join(roots().sys, 'class/block/loop', basename(loop));
  mkdirSync(partition, { recursive: true });
  writeFileSync(join(partition, 'partition'), '2\n');
  return undefined;
}

const roots = () => ({ ...realRoots, sys: join(folder, 'sys') });

function placeOf(partition: number, filesystem: Filesystem): NumberedPartition {
  const name = 'loop';
  const region = { name, sizeBytes: 64 * 1024 * 1024, logicalBlockBytes: 512 };
  const device: DeviceFacts = {
    ...{ name, transport: 'virtio', model: '', serial: 'S-1', wwn: '', firmware: '' },
    ...{ sizeBytes: region.sizeBytes, rotational: false, removable: false, readOnly: false },
    ...{ discardSupported: false, raidVolume: false, holders: [], partitions: [] },
    regions: [region],
  };
  return { device, partition, filesystem };
}

test.for<Filesystem>(['ext4', 'vfat', 'xfs'])(
  'a file is written to %s, unmounted, and read back from the disk',
  // A program that makes a mount namespace meanwhile copies our mount, and keeps the disk busy.
  { retry: 3 },
  async (filesystem, context) => {
    const why = makeDisk(filesystem);
    if (why !== undefined) context.skip(why);
    const files = await linuxFiles(exec, roots(), join(folder, 'mount'));
    const read = await files.writeOnDisk?.(placeOf(2, filesystem), '/etc/new/file', file);
    expect(Buffer.from(read?.content ?? []).toString()).toBe('hello\n');
    if (filesystem !== 'vfat') expect(read?.mode).toBe(0o640);
    mkdirSync(join(folder, 'look'));
    run('mount', ['-o', 'ro', loop, join(folder, 'look')]);
    try {
      expect(readFileSync(join(folder, 'look/etc/new/file'), 'utf8')).toBe('hello\n');
    } finally {
      run('umount', [join(folder, 'look')]);
    }
  },
);

test('mounts of a killed runner are undone; a missing file system is refused', async (context) => {
  const why = makeDisk('ext4');
  if (why !== undefined) context.skip(why);
  mkdirSync(join(folder, 'mount'));
  run('mount', [loop, join(folder, 'mount')]);
  const files = await linuxFiles(exec, roots(), join(folder, 'mount'));
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(folder);
  const wrong = [placeOf(7, 'ext4'), placeOf(2, 'xfs')];
  const problems: string[] = [];
  for (const place of wrong) {
    const problem: unknown = await files.writeOnDisk?.(place, '/a', file).catch((e: unknown) => e);
    expect(problem).toBeInstanceOf(FileError);
    problems.push(String(problem));
  }
  expect(problems[0]).toContain('has no partitions with the number 7');
  expect(problems[1]).toContain('mount -t xfs');
});
