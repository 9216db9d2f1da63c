/** Builds the packages of one version into a folder. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildConsole, consoleFolderName } from '@rackwright/console/build';
import { isAbsent } from '@rackwright/platform';
import {
  archiveFolder,
  buildRamdisk,
  type DebianArchive,
  type DebianPackage,
  openArchive,
  type RamdiskArchitecture,
  ramdiskFolder,
} from '@rackwright/runner/ramdisk';
import { type Bundle, type BundledPart, bundle, partsIn } from './bundle.ts';
import {
  commandFiles,
  type ProgramName,
  programPackage,
  programs,
  type Release,
  ramdiskPackage,
} from './contents.ts';
import { type DebianPackageContent, debianPackage, fileNameOf } from './deb.ts';
import { nodeProgram } from './node-program.ts';

const run = promisify(execFile);

/** The packages to build. */
export interface BuildRequest {
  readonly root: string;
  readonly version: string;
  readonly programs: readonly ProgramName[];
  readonly architectures: readonly RamdiskArchitecture[];
  readonly ramdisk: boolean;
  readonly outputFolder: string;
  /** Larger and sooner there, for packages that live as long as a test. */
  readonly hurried?: boolean;
  /** Milliseconds since 1970, for how old the package lists of Debian are. */
  readonly now: number;
}

/** A package that was built. */
export interface Built {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Builds one package after the other, and reports each as soon as it exists. */
export async function* buildPackages(request: BuildRequest): AsyncGenerator<Built> {
  const { root, version } = request;
  const release: Release = {
    version,
    timeSeconds: await sourceTime(root),
  };
  const cacheFolder = join(root, '.cache/debian');
  await mkdir(cacheFolder, { recursive: true });
  await mkdir(request.outputFolder, { recursive: true });
  const bundles = new Map<ProgramName, Bundle>();
  for (const name of request.programs) {
    bundles.set(name, await bundle(root, programs[name].entry, version, programs[name].form));
  }
  const console = request.programs.includes('controlplane') ? await served() : nothingServed;
  for (const architecture of request.programs.length > 0 ? request.architectures : []) {
    const node = await nodeProgram(root, cacheFolder, architecture);
    for (const [name, made] of bundles) {
      const { files: served, parts } = name === 'controlplane' ? console : nothingServed;
      const whole = { ...made, parts: distinct([...made.parts, ...parts]) };
      const files = name === 'cli' ? await commandFiles(release) : [];
      const all = { bundle: whole, node, made: files, served };
      const content = programPackage(name, architecture, release, all);
      yield await write(request, release, content);
    }
  }
  for (const architecture of request.ramdisk ? request.architectures : []) {
    yield await write(request, release, await ramdisk(request, release, architecture));
  }
}

/** Files that a program serves, and their parts of other authors. */
interface ServedBundle {
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly parts: readonly BundledPart[];
}

const nothingServed: ServedBundle = { files: new Map(), parts: [] };

/** The web console, beside the control plane. */
async function served(): Promise<ServedBundle> {
  const { files, packageFolders } = await buildConsole();
  const beside = [...files].map(
    ([path, bytes]) => [`${consoleFolderName}/${path}`, bytes] as const,
  );
  return { files: new Map(beside), parts: partsIn(packageFolders) };
}

/** Each package once: the console and the program share some. */
function distinct(parts: readonly BundledPart[]): BundledPart[] {
  const byName = new Map(parts.map((part) => [`${part.name} ${part.version}`, part]));
  return [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

async function ramdisk(
  { root, now }: BuildRequest,
  release: Release,
  architecture: RamdiskArchitecture,
): Promise<DebianPackageContent> {
  const outputFolder = ramdiskFolder(root, architecture);
  const entry = join(root, 'packages/runner/src/main.ts');
  const built = await buildRamdisk({ architecture, entry, root, outputFolder, now });
  const { parts } = await bundle(root, 'packages/runner/src/main.ts', release.version);
  const archive = await openArchive({
    ...{ folder: archiveFolder(root, architecture), now },
    ...(architecture === 'amd64' ? {} : { architecture }),
  });
  const debian = await licencesOf(root, archive, built.manifest.packages);
  return ramdiskPackage(release, architecture, {
    vmlinuz: await readFile(built.vmlinuz),
    initrd: await readFile(built.initrd),
    manifest: await readFile(join(outputFolder, 'manifest.json')),
    inside: [...debian, ...parts],
  });
}

/** Debian's licences of the packages in the ramdisk. */
async function licencesOf(
  root: string,
  archive: DebianArchive,
  packages: readonly DebianPackage[],
): Promise<BundledPart[]> {
  const unpacked = join(root, '.cache/debian', `licences-${process.pid}`);
  try {
    await archive.extract(packages, unpacked);
    return await Promise.all(
      packages.map(async ({ name, version }) => {
        const path = join(unpacked, 'usr/share/doc', name, 'copyright');
        const text = await readFile(path, 'utf8').catch(emptyIfMissing);
        return { name, version, licence: `of Debian ${name}, as its text says`, text };
      }),
    );
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
}

/** Some packages have a link in its place, to the text of a package that is not among these. */
function emptyIfMissing(error: unknown): string {
  if (isAbsent(error)) return '';
  throw error;
}

async function write(
  { outputFolder, hurried }: BuildRequest,
  { timeSeconds }: Release,
  content: DebianPackageContent,
): Promise<Built> {
  const compressible = content.compressible && hurried !== true;
  const bytes = debianPackage({ ...content, compressible }, timeSeconds);
  const path = join(outputFolder, fileNameOf(content));
  await writeFile(`${path}.new`, bytes);
  await rename(`${path}.new`, path);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { path, bytes: bytes.length, sha256 };
}

/** The time of the packed files: SOURCE_DATE_EPOCH, or the time of the commit. */
async function sourceTime(root: string): Promise<number> {
  const given = process.env['SOURCE_DATE_EPOCH'];
  const text = given ?? (await run('git', ['-C', root, 'log', '-1', '--format=%ct'])).stdout.trim();
  const seconds = Number(text);
  if (!Number.isInteger(seconds) || seconds < 0) {
    throw new Error(`SOURCE_DATE_EPOCH has to be seconds since 1970, not "${text}"`);
  }
  return seconds;
}
