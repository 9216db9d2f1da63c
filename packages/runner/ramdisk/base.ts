/**
 * The part of the ramdisk that changes seldom: kernel, modules, tools, Node. It takes half a minute
 * to make, so it is kept under a hash of all that it is made of.
 *
 * 1. Every library in the image comes from the unpacked packages, never from the build machine.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type CpioEntry, cpioArchive, foldersAbove } from '@rackwright/disk-image';
import { BUILD_PACKAGES, KERNEL_MODULES, PROGRAMS } from './contents.ts';
import type { DebianArchive, DebianPackage } from './debian.ts';
import { moduleClosure, parseModulesDep } from './modules.ts';
import { compress } from './zstd.ts';

const execFileAsync = promisify(execFile);

const LIBRARY_FOLDER = 'lib/x86_64-linux-gnu';
const LOADER = 'lib64/ld-linux-x86-64.so.2';
const PROGRAM_FOLDERS = ['usr/sbin', 'sbin', 'usr/bin', 'bin'];
const TOOL_TIMEOUT_MS = 120_000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

export interface Base {
  readonly vmlinuz: string;
  readonly archive: string;
  readonly facts: BaseFacts;
}

/** What the base is made of, for the manifest. */
export interface BaseFacts {
  readonly kernelVersion: string;
  readonly packages: readonly DebianPackage[];
  /** Names of the module list that this kernel has built in or does not have. */
  readonly modulesWithoutFile: readonly string[];
}

/** Makes the base in `folder` under `key`, unless it is there. Bases of other keys are removed. */
export async function makeBase(options: {
  readonly archive: DebianArchive;
  readonly packages: readonly DebianPackage[];
  readonly nodeBinary: string;
  readonly folder: string;
  readonly key: string;
}): Promise<Base> {
  const home = join(options.folder, `base-${options.key}`);
  const base = async (): Promise<Base> => ({
    vmlinuz: join(home, 'vmlinuz'),
    archive: join(home, 'base.cpio.zst'),
    facts: JSON.parse(await readFile(join(home, 'facts.json'), 'utf8')) as BaseFacts,
  });
  if (existsSync(home)) return await base();
  const work = join(options.folder, `work-${process.pid}`);
  const root = join(work, 'root');
  try {
    await options.archive.extract(options.packages, root);
    const made = join(work, 'made');
    await mkdir(made, { recursive: true });
    await fill(root, made, options);
    await forgetOldBases(options.folder, home);
    await putInPlace(made, home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return await base();
}

/**
 * Gives a folder its name, unless another build of the same was faster: then that one stays, and
 * is used. Throws what else keeps the folder from its name.
 */
export async function putInPlace(made: string, home: string): Promise<void> {
  try {
    await rename(made, home);
  } catch (error) {
    if (!existsSync(home)) throw error;
  }
}

async function fill(
  root: string,
  made: string,
  options: { readonly packages: readonly DebianPackage[]; readonly nodeBinary: string },
): Promise<void> {
  const versions = await readdir(join(root, 'lib/modules'));
  const kernelVersion = versions[0];
  if (kernelVersion === undefined || versions.length !== 1) {
    throw new Error(`expected one kernel in the kernel's package, found ${versions.join(', ')}`);
  }
  const modules = await kernelModules(root, kernelVersion);
  const files = [
    ...modules.entries,
    ...(await programs(root)),
    ...(await node(root, made, options.nodeBinary)),
  ];
  const entries = [...foldersAbove(files.map((file) => file.path)), ...files];
  await compress(cpioArchive(entries), join(made, 'base.cpio.zst'));
  await copyFile(join(root, `boot/vmlinuz-${kernelVersion}`), join(made, 'vmlinuz'));
  const facts: BaseFacts = {
    kernelVersion,
    packages: options.packages.filter((one) => !BUILD_PACKAGES.some((name) => name === one.name)),
    modulesWithoutFile: modules.unknown,
  };
  await writeFile(join(made, 'facts.json'), JSON.stringify(facts));
}

async function kernelModules(
  root: string,
  version: string,
): Promise<{ readonly entries: CpioEntry[]; readonly unknown: string[] }> {
  const folder = `lib/modules/${version}`;
  await runTool(root, 'kmod', 'depmod', ['-b', root, version]);
  const all = parseModulesDep(await readFile(join(root, folder, 'modules.dep'), 'utf8'));
  const { paths, unknown } = moduleClosure(all, KERNEL_MODULES);
  // The index files must name only what is in the image, so depmod runs again over just that.
  const subset = join(root, 'subset');
  for (const path of paths) {
    await mkdir(dirname(join(subset, folder, path)), { recursive: true });
    await rename(join(root, folder, path), join(subset, folder, path));
  }
  for (const index of ['modules.order', 'modules.builtin', 'modules.builtin.modinfo']) {
    await copyFile(join(root, folder, index), join(subset, folder, index));
  }
  await runTool(root, 'kmod', 'depmod', ['-b', subset, version]);
  const names = [...paths, 'modules.dep', 'modules.alias', 'modules.builtin', 'modules.softdep'];
  const entries = await Promise.all(
    names.map((name) => fileEntry(join(subset, folder, name), `${folder}/${name}`, 0o644)),
  );
  return { entries, unknown };
}

async function programs(root: string): Promise<CpioEntry[]> {
  const entries: CpioEntry[] = [await fileEntry(join(root, 'bin/busybox'), 'bin/busybox', 0o755)];
  const { stdout } = await execFileAsync(join(root, 'bin/busybox'), ['--list']);
  for (const applet of stdout.split('\n').filter((name) => name !== '' && name !== 'busybox')) {
    entries.push({ kind: 'link', path: `bin/${applet}`, target: 'busybox' });
  }
  const libraries = new Map<string, string>();
  for (const name of PROGRAMS) {
    const file = findProgram(root, name);
    entries.push(await fileEntry(file, `usr/sbin/${name}`, 0o755));
    for (const library of await librariesOf(root, file)) libraries.set(basename(library), library);
  }
  for (const [name, file] of libraries) {
    entries.push(await fileEntry(file, `${LIBRARY_FOLDER}/${name}`, 0o755));
  }
  return entries;
}

async function node(root: string, made: string, binary: string): Promise<CpioEntry[]> {
  const stripped = join(made, 'node');
  await runTool(root, 'usr/bin/x86_64-linux-gnu-strip', 'strip', ['-o', stripped, binary]);
  const entries = [await fileEntry(stripped, 'usr/bin/node', 0o755)];
  const present = new Set<string>();
  for (const program of PROGRAMS) {
    for (const library of await librariesOf(root, findProgram(root, program))) present.add(library);
  }
  for (const library of await librariesOf(root, stripped)) {
    if (present.has(library)) continue;
    entries.push(await fileEntry(library, `${LIBRARY_FOLDER}/${basename(library)}`, 0o755));
  }
  entries.push(await fileEntry(join(root, LOADER), LOADER, 0o755));
  await rm(stripped);
  return entries;
}

function findProgram(root: string, name: string): string {
  const found = PROGRAM_FOLDERS.map((folder) => join(root, folder, name)).find((p) =>
    existsSync(p),
  );
  if (found === undefined) throw new Error(`no unpacked package has the program ${name}`);
  return found;
}

/** The libraries that the loader of the unpacked packages would take for `file`. */
async function librariesOf(root: string, file: string): Promise<string[]> {
  const { stdout } = await loader(root, ['--list', file]);
  const found: string[] = [];
  for (const line of stdout.split('\n')) {
    const match = /^\s+(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$/.exec(line);
    if (match === null) continue;
    const [, name = '', path = ''] = match;
    if (name.startsWith('ld-linux')) continue;
    if (!path.startsWith(root)) {
      throw new Error(`${basename(file)} needs ${name}, which no unpacked package has (${path})`);
    }
    found.push(path);
  }
  return found;
}

/** Runs a program of the unpacked packages with their own libraries. */
async function runTool(root: string, tool: string, argv0: string, args: string[]): Promise<void> {
  const file = tool.includes('/') ? join(root, tool) : findProgram(root, tool);
  await loader(root, ['--argv0', argv0, file, ...args]);
}

async function loader(root: string, args: readonly string[]): Promise<{ stdout: string }> {
  const libraryPath = [LIBRARY_FOLDER, `usr/${LIBRARY_FOLDER}`].map((folder) => join(root, folder));
  return await execFileAsync(
    join(root, LOADER),
    ['--inhibit-cache', '--library-path', libraryPath.join(':'), ...args],
    { timeout: TOOL_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX },
  );
}

async function fileEntry(from: string, path: string, mode: number): Promise<CpioEntry> {
  return { kind: 'file', path, mode, bytes: await readFile(from) };
}

async function forgetOldBases(folder: string, home: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (name.startsWith('base-') && path !== home) await rm(path, { recursive: true, force: true });
  }
}
