/**
 * The part of the ramdisk that changes seldom: kernel, modules, tools, Node. It takes half a minute
 * to make, so it is kept under a hash of all its inputs.
 *
 * 1. Every library in the image comes from the unpacked packages, never from the build machine.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type CpioEntry, cpioArchive, foldersAbove } from '@rackwright/disk-image';
import { type ArchitectureNames, namesOf, type RamdiskArchitecture } from './architecture.ts';
import { KERNEL_MODULES, PROGRAMS } from './contents.ts';
import type { DebianArchive, DebianPackage } from './debian.ts';
import { busyboxApplets, neededLibraries } from './elf.ts';
import { moduleClosure, parseModulesDep } from './modules.ts';
import { compress } from './zstd.ts';

const execFileAsync = promisify(execFile);

const PROGRAM_FOLDERS = ['usr/sbin', 'sbin', 'usr/bin', 'bin'];
const TOOL_TIMEOUT_MS = 120_000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** The architecture of the build machine, whose tools are run. */
const OWN = namesOf.amd64;

export interface Base {
  readonly vmlinuz: string;
  readonly archive: string;
  readonly facts: BaseFacts;
}

/** The inputs of the base, for the manifest. */
export interface BaseFacts {
  readonly kernelVersion: string;
  readonly packages: readonly DebianPackage[];
  /** Names of the module list that this kernel has built in or does not have. */
  readonly modulesWithoutFile: readonly string[];
}

/** The build's own programs: for the building machine, for each processor of the ramdisk. */
export interface Tools {
  readonly archive: DebianArchive;
  readonly packages: readonly DebianPackage[];
}

/** The sources of the base's parts. */
interface Workshop {
  /** The unpacked packages that go into the ramdisk. */
  readonly root: string;
  /** Those of the tools. */
  readonly toolRoot: string;
  readonly names: ArchitectureNames;
}

/** Makes the base in `folder` under `key`, unless it is there. Bases of other keys are removed. */
export async function makeBase(options: {
  readonly archive: DebianArchive;
  readonly packages: readonly DebianPackage[];
  readonly architecture: RamdiskArchitecture;
  readonly tools: Tools;
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
  const workshop: Workshop = {
    root: join(work, 'root'),
    toolRoot: join(work, 'tools'),
    names: namesOf[options.architecture],
  };
  try {
    await options.archive.extract(options.packages, workshop.root);
    await options.tools.archive.extract(options.tools.packages, workshop.toolRoot);
    const made = join(work, 'made');
    await mkdir(made, { recursive: true });
    await fill(workshop, made, options);
    await forgetOldBases(options.folder, home);
    await moveInto(made, home);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return await base();
}

/**
 * Gives a folder its name, unless another build of the same was faster: then that one stays, and is
 * used. Throws any other error that keeps the folder from its name.
 */
export async function moveInto(made: string, home: string): Promise<void> {
  try {
    await rename(made, home);
  } catch (error) {
    if (!existsSync(home)) throw error;
  }
}

async function fill(
  workshop: Workshop,
  made: string,
  options: { readonly packages: readonly DebianPackage[]; readonly nodeBinary: string },
): Promise<void> {
  const { root, names } = workshop;
  const versions = await readdir(join(root, 'lib/modules'));
  const kernelVersion = versions[0];
  if (kernelVersion === undefined || versions.length !== 1) {
    throw new Error(`expected one kernel in the kernel's package, found ${versions.join(', ')}`);
  }
  const modules = await kernelModules(workshop, kernelVersion);
  const node = join(made, 'node');
  await runTool(workshop, `usr/bin/${names.triplet}-strip`, ['-o', node, options.nodeBinary]);
  const files = [
    ...modules.entries,
    ...(await busybox(root)),
    ...(await programs(workshop, node)),
    await fileEntry(join(root, names.loader), names.loader, 0o755),
  ];
  await rm(node);
  const entries = [...foldersAbove(files.map((file) => file.path)), ...files];
  await compress(cpioArchive(entries), join(made, 'base.cpio.zst'));
  await copyFile(join(root, `boot/vmlinuz-${kernelVersion}`), join(made, 'vmlinuz'));
  const facts: BaseFacts = {
    kernelVersion,
    packages: options.packages,
    modulesWithoutFile: modules.unknown,
  };
  await writeFile(join(made, 'facts.json'), JSON.stringify(facts));
}

async function kernelModules(
  workshop: Workshop,
  version: string,
): Promise<{ readonly entries: CpioEntry[]; readonly unknown: string[] }> {
  const { root, toolRoot } = workshop;
  const folder = `lib/modules/${version}`;
  const kmod = findProgram(toolRoot, 'kmod');
  const depmod = async (base: string): Promise<void> => {
    await ownLoader(workshop, ['--argv0', 'depmod', kmod, '-b', base, version]);
  };
  await depmod(root);
  const all = parseModulesDep(await readFile(join(root, folder, 'modules.dep'), 'utf8'));
  const { paths, unknown } = moduleClosure(all, KERNEL_MODULES);
  // The index files must name only modules of the image, so depmod runs again over just those.
  const subset = join(root, 'subset');
  for (const path of paths) {
    await mkdir(dirname(join(subset, folder, path)), { recursive: true });
    await rename(join(root, folder, path), join(subset, folder, path));
  }
  for (const index of ['modules.order', 'modules.builtin', 'modules.builtin.modinfo']) {
    await copyFile(join(root, folder, index), join(subset, folder, index));
  }
  await depmod(subset);
  const names = [...paths, 'modules.dep', 'modules.alias', 'modules.builtin', 'modules.softdep'];
  const entries = await Promise.all(
    names.map((name) => fileEntry(join(subset, folder, name), `${folder}/${name}`, 0o644)),
  );
  return { entries, unknown };
}

async function busybox(root: string): Promise<CpioEntry[]> {
  const program = await fileEntry(join(root, 'bin/busybox'), 'bin/busybox', 0o755);
  const applets = busyboxApplets(await readFile(join(root, 'bin/busybox')));
  return [
    program,
    ...applets.map((name) => ({ kind: 'link', path: `bin/${name}`, target: 'busybox' }) as const),
  ];
}

async function programs(workshop: Workshop, node: string): Promise<CpioEntry[]> {
  const found = PROGRAMS.map((name) => [name, findProgram(workshop.root, name)] as const);
  const libraries = await librariesOf(workshop, [node, ...found.map(([, file]) => file)]);
  const folder = `lib/${workshop.names.triplet}`;
  return await Promise.all([
    ...found.map(([name, file]) => fileEntry(file, `usr/sbin/${name}`, 0o755)),
    fileEntry(node, 'usr/bin/node', 0o755),
    ...[...libraries].map(([name, file]) => fileEntry(file, `${folder}/${name}`, 0o755)),
  ]);
}

function findProgram(root: string, name: string): string {
  const found = PROGRAM_FOLDERS.map((folder) => join(root, folder, name)).find((p) =>
    existsSync(p),
  );
  if (found === undefined) throw new Error(`no unpacked package has the program ${name}`);
  return found;
}

/** The libraries that these programs need, and those that the libraries need, by name. */
async function librariesOf(
  workshop: Workshop,
  files: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { root, names } = workshop;
  const folders = [`lib/${names.triplet}`, `usr/lib/${names.triplet}`];
  const all = new Map<string, string>();
  let asking = files;
  while (asking.length > 0) {
    const args = ['--dynamic', '--wide', ...asking];
    const { stdout } = await runTool(workshop, `usr/bin/${names.triplet}-readelf`, args);
    const fresh = neededLibraries(stdout).filter((name) => {
      return !all.has(name) && name !== basename(names.loader);
    });
    for (const name of fresh) {
      const file = folders.map((folder) => join(root, folder, name)).find((p) => existsSync(p));
      if (file === undefined) throw new Error(`no unpacked package has the library ${name}`);
      all.set(name, file);
    }
    asking = fresh.flatMap((name) => all.get(name) ?? []);
  }
  return all;
}

/** Runs a program of the unpacked tools with their own libraries. */
async function runTool(
  workshop: Workshop,
  tool: string,
  args: readonly string[],
): Promise<{ readonly stdout: string }> {
  return await ownLoader(workshop, [join(workshop.toolRoot, tool), ...args]);
}

async function ownLoader(
  { toolRoot }: Workshop,
  args: readonly string[],
): Promise<{ readonly stdout: string }> {
  const folders = [`lib/${OWN.triplet}`, `usr/lib/${OWN.triplet}`];
  const libraryPath = folders.map((folder) => join(toolRoot, folder)).join(':');
  return await execFileAsync(
    join(toolRoot, OWN.loader),
    ['--inhibit-cache', '--library-path', libraryPath, ...args],
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
