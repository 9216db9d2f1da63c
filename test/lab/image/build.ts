/**
 * Builds the bootable Debian of the lab: a disk with a GPT, a partition that BIOS (syslinux) and
 * UEFI (Debian's signed shim and GRUB) boot from, and the root file system; or, to be booted over
 * the network, its kernel and the root as an initial ramdisk. No loop device or mount is needed.
 */
import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync, statSync } from 'node:fs';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Digest, parseDigest } from '@rackwright/oci';
import { debianRoot } from '../debian-root.ts';
import { signedLoader } from '../firmware.ts';
import { runProgram } from '../processes.ts';
import {
  BOOT_FILES,
  ENABLED,
  FILES,
  MASKED,
  NETBOOT_FILES,
  NETBOOT_WORDS,
  ROOT_UUID,
  ROOT_WORDS,
  VERSION_FILE,
} from './recipe.ts';

const CACHE = join(import.meta.dirname, '../../../.cache/lab');
const MIB = 1024 * 1024;
const BOOT_MIB = 24;
const ROOT_MIB = 192;
const BOOT_CODE = '/usr/lib/syslinux/mbr/gptmbr.bin';
const BOOT_CODE_BYTES_MAX = 440;
/** The first partition begins here, and the end has room for the second table. */
const GAP_MIB = 1;

/** A file with its digest. */
export interface DigestedFile {
  readonly path: string;
  readonly bytes: number;
  readonly digest: Digest;
}

/** A disk as it is to be on a machine, and as it is published. */
export interface LabImage {
  readonly version: string;
  readonly disk: DigestedFile;
  /** The same, compressed by zstd. */
  readonly packed: DigestedFile;
}

/** The same as a qcow2 file, of which only the clusters that it has are fetched. */
export interface LabQcow2 extends Omit<LabImage, 'packed'> {
  readonly qcow2: DigestedFile;
}

/** A root in memory: nothing of it is on a disk. */
export interface LabNetbootImage {
  readonly version: string;
  readonly kernel: DigestedFile;
  readonly initrd: DigestedFile;
  readonly kernelArguments: string;
}

/** Builds an image for each version in `folder`; they differ by one file. */
export async function buildImages(
  folder: string,
  versions: readonly string[],
  files = FILES,
): Promise<LabImage[]> {
  const root = await unpackRoot(folder, files);
  const boot = await makeBootPartition(folder, root);
  const images: LabImage[] = [];
  for (const version of versions) {
    await writeFile(join(root, VERSION_FILE), `${version}\n`);
    images.push(await makeDisk(folder, root, boot, version));
  }
  await rm(root, { recursive: true });
  return images;
}

/** Puts the disk of an image into another form. */
export async function asQcow2({ version, disk }: LabImage): Promise<LabQcow2> {
  const path = `${disk.path}.qcow2`;
  await runProgram('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', disk.path, path]);
  return { version, disk, qcow2: await digested(path) };
}

/** Builds an image without a disk in `folder`. */
export async function buildNetbootImage(folder: string, version: string): Promise<LabNetbootImage> {
  const root = await unpackRoot(folder, NETBOOT_FILES);
  await writeFile(join(root, VERSION_FILE), `${version}\n`);
  const [kernel, initrd] = [join(folder, 'vmlinuz'), join(folder, 'root.cpio.zst')];
  for (const name of readdirSync(join(root, 'boot'))) {
    if (name.startsWith('vmlinuz-')) await copyFile(join(root, 'boot', name), kernel);
  }
  await rm(join(root, 'boot'), { recursive: true });
  const pack = 'cd "$0" && find . | cpio --quiet --create --format=newc | zstd -q -3 -o "$1"';
  await runProgram('bash', ['-o', 'pipefail', '-c', pack, root, initrd]);
  await rm(root, { recursive: true });
  const digests = { kernel: await digested(kernel), initrd: await digested(initrd) };
  return { version, ...digests, kernelArguments: NETBOOT_WORDS };
}

async function unpackRoot(
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const recipe = createHash('sha256').update(JSON.stringify(ROOT_WORDS)).digest('hex').slice(0, 12);
  const archive = join(CACHE, `debian-${recipe}.tar`);
  await debianRoot(archive, ROOT_WORDS);
  mkdirSync(folder, { recursive: true });
  const root = join(folder, 'root');
  mkdirSync(root);
  await runProgram('tar', ['-xf', archive, '-C', root]);
  await configure(root, files);
  return root;
}

async function configure(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const name of readdirSync(join(root, 'etc/cloud/cloud.cfg.d'))) {
    if (name.endsWith('.cfg') && !name.includes('logging')) {
      await rm(join(root, 'etc/cloud/cloud.cfg.d', name));
    }
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const systemctl = (...args: string[]) => runProgram('systemctl', [`--root=${root}`, ...args]);
  await systemctl('enable', ...ENABLED);
  await systemctl('mask', ...MASKED);
  await systemctl('set-default', 'multi-user.target');
}

/** Moves the kernel onto a partition of its own. */
async function makeBootPartition(folder: string, root: string): Promise<string> {
  const partition = join(folder, 'boot.fat');
  await runProgram('truncate', ['--size', `${BOOT_MIB}M`, partition]);
  await runProgram('mkfs.vfat', ['-n', 'BOOT', partition]);
  for (const path of ['EFI', 'EFI/BOOT', 'EFI/debian']) {
    await runProgram('mmd', ['-i', partition, `::${path}`]);
  }
  const put = (from: string, to: string) => runProgram('mcopy', ['-i', partition, from, `::${to}`]);
  for (const name of readdirSync(join(root, 'boot'))) {
    const [kind = ''] = name.split('-');
    if (kind === 'vmlinuz' || kind === 'initrd.img') await put(join(root, 'boot', name), kind);
    await rm(join(root, 'boot', name));
  }
  await put(signedLoader('shim'), 'EFI/BOOT/BOOTX64.EFI');
  await put(signedLoader('grub'), 'EFI/BOOT/grubx64.efi');
  for (const [path, text] of Object.entries(BOOT_FILES)) {
    await writeFile(join(folder, 'boot-file'), text);
    await put(join(folder, 'boot-file'), path);
  }
  await runProgram('syslinux', ['--install', partition]);
  return partition;
}

async function makeDisk(
  folder: string,
  root: string,
  boot: string,
  version: string,
): Promise<LabImage> {
  const fileSystem = join(folder, 'root.ext4');
  await rm(fileSystem, { force: true });
  await runProgram('truncate', ['--size', `${ROOT_MIB}M`, fileSystem]);
  const form = ['-q', '-t', 'ext4', '-b', '4096', '-m', '0', '-J', 'size=4'];
  await runProgram('mke2fs', [...form, '-L', 'root', '-U', ROOT_UUID, '-d', root, fileSystem]);
  const disk = join(folder, `${version}.raw`);
  const sizeMib = 2 * GAP_MIB + BOOT_MIB + ROOT_MIB;
  await runProgram('truncate', ['--size', `${sizeMib}M`, disk]);
  const table = [
    'label: gpt',
    `start=${GAP_MIB}MiB, size=${BOOT_MIB}MiB, type=U, name=boot, attrs=LegacyBIOSBootable`,
    `start=${GAP_MIB + BOOT_MIB}MiB, size=${ROOT_MIB}MiB, type=L, name=root`,
  ];
  await runProgram('sfdisk', ['--quiet', disk], { input: `${table.join('\n')}\n` });
  await place(BOOT_CODE, disk, 0);
  await place(boot, disk, GAP_MIB);
  await place(fileSystem, disk, GAP_MIB + BOOT_MIB);
  const packed = `${disk}.zst`;
  await runProgram('zstd', ['-q', '-3', '-f', disk, '-o', packed]);
  return { version, disk: await digested(disk), packed: await digested(packed) };
}

/** Copies a file into another one, holes left out. */
async function place(from: string, to: string, atMib: number): Promise<void> {
  if (atMib === 0 && statSync(from).size > BOOT_CODE_BYTES_MAX) {
    throw new Error(`${from} does not fit in front of a partition table`);
  }
  const args = ['bs=1M', `seek=${atMib}`, 'conv=notrunc,sparse', 'status=none'];
  await runProgram('dd', [`if=${from}`, `of=${to}`, ...args]);
}

/** By Node's own hash. */
export async function digested(path: string): Promise<DigestedFile> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: MIB })) {
    hash.update(chunk as Buffer);
  }
  const digest = parseDigest(`sha256:${hash.digest('hex')}`);
  if (digest === undefined) throw new Error('unreachable: it is a digest');
  return { path, bytes: statSync(path).size, digest };
}
