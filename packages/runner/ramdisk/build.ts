/**
 * Builds the ramdisk that hosts boot: Debian's generic kernel, its disk tools, Node and our runner.
 *
 * 1. Built from Debian packages of this machine's release and npm packages alone; nothing is
 *    installed and no root is needed.
 * 2. Unchanged inputs are recognised by a hash; then nothing is built again.
 * 3. The image is two archives one after the other, which the kernel unpacks in order: the base,
 *    which seldom changes, and the small one with init and runner.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CpioEntry, cpioArchive, foldersAbove } from '@rackwright/disk-image';
import { build as esbuild } from 'esbuild';
import { namesOf, type RamdiskArchitecture } from './architecture.ts';
import { type Base, makeBase, type Tools } from './base.ts';
import { BUILD_PACKAGES, MODULES_AT_BOOT, POWER_COMMANDS, TOOL_PACKAGES } from './contents.ts';
import { type DebianArchive, type DebianPackage, openArchive } from './debian.ts';
import { pinnedNode } from './pinned-node.ts';
import { compress } from './zstd.ts';

const HERE = import.meta.dirname;
/** Sources whose change makes another base. */
const CPIO_SOURCE = '../../disk-image/src/cpio.ts';
const BASE_SOURCES = [
  ...['architecture.ts', 'base.ts', 'contents.ts', CPIO_SOURCE, 'elf.ts', 'modules.ts', 'zstd.ts'],
];

/** The built files. `manifest.json` lies beside them. */
export interface Ramdisk {
  readonly vmlinuz: string;
  readonly initrd: string;
  readonly manifest: RamdiskManifest;
  /** False when the files were there already. */
  readonly rebuilt: boolean;
}

/** The inputs of the ramdisk; also in the image as `/etc/rackwright/ramdisk.json`. */
export interface RamdiskManifest {
  readonly inputsSha256: string;
  readonly kernelVersion: string;
  readonly nodeVersion: string;
  readonly packages: readonly DebianPackage[];
  readonly modulesWithoutFile: readonly string[];
  readonly files: Readonly<Record<'vmlinuz' | 'initrd.zst', FileFacts>>;
}

interface FileFacts {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Builds the ramdisk for hosts of an architecture into `outputFolder`, of which each architecture
 * has one of its own. `entry` is the program to run in the ramdisk; `root` holds package-lock.json,
 * and below `.cache` packages and the base between builds; `now` is in milliseconds since 1970.
 */
export async function buildRamdisk(options: {
  readonly architecture: RamdiskArchitecture;
  readonly entry: string;
  readonly root: string;
  readonly outputFolder: string;
  readonly now: number;
}): Promise<Ramdisk> {
  if (process.arch !== 'x64') {
    throw new Error(`the ramdisk can be built on x64 only; this is ${process.arch}`);
  }
  const { architecture, root, now, outputFolder } = options;
  const cacheFolder = join(root, '.cache');
  const archive = await openArchive({
    ...{ folder: archiveFolder(root, architecture), now },
    // Without it the archive is the one that other builds use, too.
    ...(architecture === 'amd64' ? {} : { architecture }),
  });
  const own = await openArchive({ folder: archiveFolder(root, 'amd64'), now });
  const tools = { archive: own, packages: await toolPackages(own, architecture) };
  const packages = await resolvePackages(archive, architecture);
  const node = await nodeFor(root, cacheFolder, architecture);
  const baseKey = hashOf([
    JSON.stringify([architecture, packages, tools.packages]),
    await readFile(node.binary),
    ...(await Promise.all(BASE_SOURCES.map((name) => readFile(join(HERE, name))))),
  ]);
  const folder = ramdiskFolder(root, architecture);
  await mkdir(folder, { recursive: true });
  await mkdir(outputFolder, { recursive: true });
  const made = { archive, packages, architecture, tools, nodeBinary: node.binary };
  const base = await makeBase({ ...made, folder, key: baseKey.slice(0, 16) });
  const program = await programEntries(options.entry, base, node.version);
  const programBytes = cpioArchive(program);
  const inputsSha256 = hashOf([baseKey, programBytes]);
  const before = await readManifest(outputFolder);
  if (before?.inputsSha256 === inputsSha256)
    return { ...outputs(outputFolder, before), rebuilt: false };
  const whole = { base, programBytes, inputsSha256, nodeVersion: node.version };
  return { ...outputs(outputFolder, await assemble(outputFolder, whole)), rebuilt: true };
}

/** The folder of an architecture's ramdisk in the repository. */
export function ramdiskFolder(root: string, architecture: RamdiskArchitecture): string {
  return join(root, '.cache', architecture === 'amd64' ? 'ramdisk' : `ramdisk-${architecture}`);
}

/** The folder of an architecture's Debian packages. */
export function archiveFolder(root: string, architecture: RamdiskArchitecture): string {
  return join(root, '.cache/apt', architecture === 'amd64' ? 'own' : architecture);
}

/** The `node` program for the ramdisk; for the same processor the one that runs this. */
async function nodeFor(
  root: string,
  cacheFolder: string,
  architecture: RamdiskArchitecture,
): Promise<{ readonly binary: string; readonly version: string }> {
  if (architecture === 'amd64') return { binary: process.execPath, version: process.version };
  const folder = join(cacheFolder, 'debian');
  await mkdir(folder, { recursive: true });
  const node = await pinnedNode(root, folder, architecture);
  return { binary: join(node.folder, 'bin/node'), version: `v${node.version}` };
}

async function resolvePackages(
  archive: DebianArchive,
  architecture: RamdiskArchitecture,
): Promise<DebianPackage[]> {
  const { kernelPackage } = namesOf[architecture];
  const kernels = await archive.closure([kernelPackage], (name) => /^linux-image-\d/.test(name));
  const tools = await archive.closure(TOOL_PACKAGES, (name) => /^(lib|zlib)/.test(name));
  const names = [...kernels.filter((name) => name !== kernelPackage), ...tools];
  return await archive.describe([...new Set(names)]);
}

async function toolPackages(
  own: DebianArchive,
  architecture: RamdiskArchitecture,
): Promise<Tools['packages']> {
  const wanted = [...BUILD_PACKAGES, namesOf[architecture].binutilsPackage];
  return await own.describe(await own.closure(wanted, (name) => /^(lib|zlib)/.test(name)));
}

async function programEntries(
  entry: string,
  base: Base,
  nodeVersion: string,
): Promise<CpioEntry[]> {
  const bundled = await esbuild({
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    format: 'cjs', // a module that imports node:http has all of undici loaded with it
    target: 'node24',
    write: false,
    legalComments: 'none',
    logLevel: 'error',
  });
  const [bundle] = bundled.outputFiles;
  if (bundle === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  const about = {
    kernelVersion: base.facts.kernelVersion,
    nodeVersion,
    packages: base.facts.packages,
  };
  const text = (path: string, mode: number, content: string | Uint8Array): CpioEntry => ({
    kind: 'file',
    path,
    mode,
    bytes: typeof content === 'string' ? Buffer.from(content) : content,
  });
  const files: CpioEntry[] = [
    text('init', 0o755, await readFile(join(HERE, 'init'))),
    text('etc/group', 0o644, 'root:x:0:\n'),
    text('etc/hosts', 0o644, '127.0.0.1 localhost\n::1 localhost\n'),
    text('etc/lldp.sh', 0o755, await readFile(join(HERE, 'lldp.sh'))),
    text('etc/modules', 0o644, `${MODULES_AT_BOOT.join('\n')}\n`),
    text('etc/passwd', 0o644, 'root:x:0:0:root:/root:/bin/sh\n'),
    text('etc/rackwright/ramdisk.json', 0o644, `${JSON.stringify(about)}\n`),
    text('etc/udhcpc.sh', 0o755, await readFile(join(HERE, 'udhcpc.sh'))),
    text('usr/lib/rackwright/runner.cjs', 0o644, bundle.contents),
    ...POWER_COMMANDS.map((name) =>
      text(`usr/sbin/${name}`, 0o755, `#!/bin/sh\nsync\nexec /bin/busybox ${name} -f "$@"\n`),
    ),
  ];
  const folders = ['dev', 'proc', 'root', 'run', 'sys', 'tmp', 'var'];
  return [
    ...foldersAbove([...files.map((file) => file.path), ...folders.map((name) => `${name}/x`)]),
    { kind: 'characterDevice', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
    ...files,
  ];
}

async function assemble(
  folder: string,
  whole: {
    readonly base: Base;
    readonly programBytes: Uint8Array;
    readonly inputsSha256: string;
    readonly nodeVersion: string;
  },
): Promise<RamdiskManifest> {
  const { base, programBytes, inputsSha256, nodeVersion } = whole;
  const fresh = (name: string): string => join(folder, `${name}.new-${process.pid}`);
  try {
    await compress(programBytes, fresh('program'));
    const initrd = Buffer.concat([await readFile(base.archive), await readFile(fresh('program'))]);
    await writeFile(fresh('initrd.zst'), initrd);
    await copyFile(base.vmlinuz, fresh('vmlinuz'));
    const manifest: RamdiskManifest = {
      inputsSha256,
      kernelVersion: base.facts.kernelVersion,
      nodeVersion,
      packages: base.facts.packages,
      modulesWithoutFile: base.facts.modulesWithoutFile,
      files: {
        vmlinuz: factsOf(await readFile(base.vmlinuz)),
        'initrd.zst': factsOf(initrd),
      },
    };
    await writeFile(fresh('manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    // The manifest last: a reader of it finds the files that it describes.
    await rm(join(folder, 'manifest.json'), { force: true });
    for (const name of ['vmlinuz', 'initrd.zst', 'manifest.json']) {
      await rename(fresh(name), join(folder, name));
    }
    return manifest;
  } finally {
    for (const name of ['program', 'vmlinuz', 'initrd.zst', 'manifest.json']) {
      await rm(fresh(name), { force: true });
    }
  }
}

function outputs(folder: string, manifest: RamdiskManifest): Omit<Ramdisk, 'rebuilt'> {
  return { vmlinuz: join(folder, 'vmlinuz'), initrd: join(folder, 'initrd.zst'), manifest };
}

async function readManifest(folder: string): Promise<RamdiskManifest | undefined> {
  const file = join(folder, 'manifest.json');
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(await readFile(file, 'utf8')) as RamdiskManifest;
  } catch {
    return undefined; // half a manifest describes nothing: build again
  }
}

function factsOf(bytes: Uint8Array): FileFacts {
  return { bytes: bytes.length, sha256: hashOf([bytes]) };
}

/** SHA-256, in hex, of the hashes of `parts`; of one part its own. */
function hashOf(parts: readonly (string | Uint8Array)[]): string {
  const digest = (part: string | Uint8Array): string =>
    createHash('sha256').update(part).digest('hex');
  const [first, ...rest] = parts.map(digest);
  return rest.length === 0 ? (first ?? '') : digest([first, ...rest].join('\n'));
}
