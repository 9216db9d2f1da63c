/**
 * Files of the Linux machine that we run on.
 *
 * F1 A partition is mounted at a private folder, without devices and set-user-id programs, and
 *    unmounted before its content is trusted: the bytes that are read back come from the disk.
 * F2 A partition that an earlier runner has left mounted is unmounted first.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exec } from '@rackwright/platform';
import { boundText } from '@rackwright/results';
import {
  type FileContent,
  FileError,
  type Filesystem,
  type MachineFiles,
  type NumberedPartition,
} from '../machine/files.ts';
import { readConfined, writeConfined } from './confined-file.ts';
import { namesIn, readText } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';

const folderMode = 0o700;
const toolTimeoutMs = 60_000;
const toolOutputBytesMax = 4096;
const toolWordsBytesMax = 512;

/** Kernel modules by file system; no other module depends on those for names in vfat. */
const modules: Readonly<Record<Filesystem, readonly string[]>> = {
  ext4: ['ext4'],
  xfs: ['xfs'],
  vfat: ['vfat', 'nls_cp437', 'nls_ascii', 'nls_iso8859-1', 'nls_utf8'],
};

/** A FAT file system keeps no permission bits, and refuses to set them unless it is quiet. */
const moreOptions: Readonly<Record<Filesystem, string>> = { ext4: '', xfs: '', vfat: ',quiet' };

/** Files below `root` alone: a machine made of software. */
export function folderFiles(root: string): MachineFiles {
  return { writeHere: (path, file) => writeAndRead(root, path, file) };
}

/** `mountPoint` is made when it is needed. */
export async function linuxFiles(
  exec: Exec,
  roots: SysRoots,
  mountPoint: string,
): Promise<MachineFiles> {
  await unmount(exec, roots, mountPoint);
  return {
    writeHere: (path, file) => writeAndRead('/', path, file),
    writeOnDisk: async (partition, path, file) => {
      const node = `/dev/${await partitionName(roots, partition)}`;
      await mkdir(mountPoint, { recursive: true, mode: folderMode });
      const within = async <T>(how: 'rw' | 'ro', act: () => Promise<T>): Promise<T> => {
        await mount(exec, roots, { node, how, filesystem: partition.filesystem, mountPoint });
        try {
          return await act();
        } finally {
          await unmount(exec, roots, mountPoint);
        }
      };
      await within('rw', () => writeConfined(mountPoint, path, file));
      await tool(exec, 'blockdev', ['--flushbufs', node]);
      return await within('ro', () => readConfined(mountPoint, path, file.content.length));
    },
  };
}

async function writeAndRead(root: string, path: string, file: FileContent): Promise<FileContent> {
  await writeConfined(root, path, file);
  return await readConfined(root, path, file.content.length);
}

/** The kernel's name of a partition, by its number. */
async function partitionName(
  roots: SysRoots,
  { device, partition }: NumberedPartition,
): Promise<string> {
  const found: string[] = [];
  for (const region of device.regions) {
    const folder = join(roots.sys, 'class/block', region.name);
    for (const name of await namesIn(folder)) {
      if (!name.startsWith(region.name)) continue;
      if ((await readText(folder, name, 'partition')) === String(partition)) found.push(name);
    }
  }
  const [name] = found;
  if (name === undefined || found.length > 1) {
    const count = found.length === 0 ? 'no' : `${found.length}`;
    throw new FileError(`${device.name} has ${count} partitions with the number ${partition}`);
  }
  return name;
}

async function mount(
  exec: Exec,
  roots: SysRoots,
  at: {
    readonly node: string;
    readonly how: 'rw' | 'ro';
    readonly filesystem: Filesystem;
    readonly mountPoint: string;
  },
): Promise<void> {
  const { node, how, filesystem, mountPoint } = at;
  for (const module of modules[filesystem]) {
    // Built in, or a name that this kernel does not have: the mount tells.
    await tool(exec, 'modprobe', ['-q', module]).catch(() => undefined);
  }
  const options = `${how},nosuid,nodev,noexec${moreOptions[filesystem]}`;
  await tool(exec, 'mount', ['-t', filesystem, '-o', options, node, mountPoint]);
  if (await isMounted(roots, mountPoint)) return;
  throw new FileError(`${node} was not mounted, though mount says so`);
}

async function unmount(exec: Exec, roots: SysRoots, mountPoint: string): Promise<void> {
  if (!(await isMounted(roots, mountPoint))) return;
  await tool(exec, 'umount', [mountPoint]);
  if (await isMounted(roots, mountPoint)) {
    throw new FileError(`${mountPoint} is still mounted: boot the host again`);
  }
}

/** proc(5): the fifth field of mountinfo; blanks are written as octal numbers. */
async function isMounted(roots: SysRoots, mountPoint: string): Promise<boolean> {
  const lines = (await readText(roots.proc, 'self/mountinfo')).split('\n');
  return lines.some((line) => line.split(' ')[4] === mountPoint.replaceAll(' ', '\\040'));
}

async function tool(exec: Exec, file: string, args: readonly string[]): Promise<void> {
  const limits = { timeoutMs: toolTimeoutMs, outputBytesMax: toolOutputBytesMax };
  const result = await exec.run({ file, args, ...limits });
  if (result.kind === 'exited' && result.code === 0) return;
  const message = 'stderr' in result ? `${result.stdout} ${result.stderr}` : result.message;
  const text = boundText(message.replace(/\s+/g, ' ').trim(), toolWordsBytesMax);
  throw new FileError(`${[file, ...args].join(' ')}: ${result.kind}: ${text}`);
}
