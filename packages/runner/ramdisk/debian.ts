/**
 * Fetches Debian packages without installing them, from the sources that this machine already
 * trusts, and unpacks them into a folder.
 *
 * 1. The repository address is the machine's own: it comes from `apt-get indextargets`. No mirror
 *    is named here.
 * 2. Lists and caches are in a folder of ours: the machine's own apt state is neither needed nor
 *    changed, and no root is needed.
 * 3. The installed key ring verifies the lists, and the lists verify every package.
 *
 * It must not install anything.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorText } from '@rackwright/platform';
import type { RamdiskArchitecture } from './architecture.ts';

const execFileAsync = promisify(execFile);

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const APT_TIMEOUT_MS = 300_000;
/** For all packages of a ramdisk at once. */
const patient = { timeout: 1_800_000 };
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** Lists younger than this are used as they are. */
export const LISTS_AGE_MAX_MS = 24 * 3_600_000;

/** One line of a source list. `uri` ends with "/". */
export interface DebianSource {
  readonly uri: string;
  readonly suite: string;
  readonly component: string;
}

/** A package as the signed lists describe it. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
}

/** Our own view of a Debian archive. */
export interface DebianArchive {
  /** What the lists say about these packages; throws when one is unknown. */
  describe(names: readonly string[]): Promise<DebianPackage[]>;
  /** These packages and all that they depend on, as far as `keep` accepts the name. */
  closure(names: readonly string[], keep: (name: string) => boolean): Promise<string[]>;
  /** Downloads (once per version) and unpacks packages over each other into `root`. */
  extract(packages: readonly DebianPackage[], root: string): Promise<void>;
}

/** Reads `apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)'`. */
export function parseTargets(text: string): DebianSource[] {
  const seen = new Map<string, DebianSource>();
  for (const line of text.split('\n')) {
    const [uri, suite, component] = line.split('|');
    if (uri === undefined || suite === undefined || component !== 'main') continue;
    if (!/\/debian(-security)?\/$/.test(uri)) continue;
    seen.set(line, { uri, suite, component });
  }
  return [...seen.values()];
}

/**
 * The machine's Debian source with its suite replaced. The security archive has no such suite and
 * drops out.
 */
export function withSuite(sources: readonly DebianSource[], suite: string): DebianSource[] {
  const plain = sources.find((source) => source.uri.endsWith('/debian/'));
  return plain === undefined ? [] : [{ ...plain, suite }];
}

/** The text of a source list. */
export function sourceList(sources: readonly DebianSource[], keyring: string | undefined): string {
  const options = keyring === undefined ? '' : `[signed-by=${keyring}] `;
  return sources.map((s) => `deb ${options}${s.uri} ${s.suite} ${s.component}\n`).join('');
}

/** Reads `apt-cache show`; of several versions of one package the first is apt's candidate. */
export function parseShow(text: string): DebianPackage[] {
  const found = new Map<string, DebianPackage>();
  for (const paragraph of text.split('\n\n')) {
    const field = (name: string): string | undefined =>
      new RegExp(`^${name}: (.+)$`, 'm').exec(paragraph)?.[1];
    const [name, version, sha256] = [field('Package'), field('Version'), field('SHA256')];
    if (name === undefined || version === undefined || sha256 === undefined) continue;
    if (!found.has(name)) found.set(name, { name, version, sha256 });
  }
  return [...found.values()];
}

/** The Debian sources that this machine uses. Throws on a machine that has none. */
export async function machineSources(): Promise<DebianSource[]> {
  const { stdout } = await run('apt-get', [
    'indextargets',
    '--no-release-info',
    '--format',
    '$(REPO_URI)|$(RELEASE)|$(COMPONENT)',
    'Created-By: Packages',
  ]);
  const sources = parseTargets(stdout);
  if (sources.length === 0) {
    throw new Error(
      'this machine has no Debian package source (an address that ends with /debian/, component ' +
        'main); the packages can only be fetched on Debian',
    );
  }
  return sources;
}

/**
 * Opens an archive whose lists and packages are kept in `folder`. With `suite`, the machine's
 * source with that suite instead of its own; with `architecture`, the packages for it instead of
 * those for this machine. `now` is in milliseconds since 1970.
 */
export async function openArchive(options: {
  readonly folder: string;
  readonly suite?: string;
  readonly architecture?: RamdiskArchitecture;
  readonly now: number;
}): Promise<DebianArchive> {
  const own = await machineSources();
  const sources = options.suite === undefined ? own : withSuite(own, options.suite);
  const text = sourceList(sources, existsSync(KEYRING) ? KEYRING : undefined);
  const apt = aptOptions(options.folder, options.architecture);
  await mkdir(join(options.folder, 'lists/partial'), { recursive: true });
  await mkdir(join(options.folder, 'cache/archives/partial'), { recursive: true });
  await mkdir(join(options.folder, 'debs'), { recursive: true });
  await refreshLists(options.folder, text, apt, options.now);
  return {
    describe: (names) => describe(apt, names),
    closure: (names, keep) => closure(apt, names, keep),
    extract: (packages, root) => extract(join(options.folder, 'debs'), apt, packages, root),
  };
}

function aptOptions(folder: string, architecture: RamdiskArchitecture | undefined): string[] {
  const settings = {
    // The list as well: without one apt asks dpkg, which knows this machine's.
    ...(architecture === undefined
      ? {}
      : { 'APT::Architecture': architecture, 'APT::Architectures::': architecture }),
    'Dir::Etc::SourceList': join(folder, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State': folder,
    'Dir::State::Lists': join(folder, 'lists'),
    'Dir::State::Status': '/dev/null',
    'Dir::Cache': join(folder, 'cache'),
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
    'Acquire::http::Timeout': '30',
  };
  return Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
}

async function refreshLists(
  folder: string,
  text: string,
  apt: readonly string[],
  now: number,
): Promise<void> {
  const listFile = join(folder, 'sources.list');
  const stamp = join(folder, 'updated');
  const before = existsSync(listFile) ? await readFile(listFile, 'utf8') : '';
  const usable = before === text && existsSync(stamp);
  if (usable && now - (await stat(stamp)).mtimeMs < LISTS_AGE_MAX_MS) return;
  await writeFile(listFile, text);
  try {
    await run('apt-get', [...apt, 'update', '-q', '--error-on=any']);
    await writeFile(stamp, '');
  } catch (error) {
    if (!usable) throw error;
    process.stderr.write(`debian: the package lists could not be renewed; old ones are used\n`);
  }
}

async function describe(
  apt: readonly string[],
  names: readonly string[],
): Promise<DebianPackage[]> {
  const { stdout } = await run('apt-cache', [...apt, 'show', '--no-all-versions', ...names]);
  const found = parseShow(stdout);
  const missing = names.filter((name) => !found.some((one) => one.name === name));
  if (missing.length > 0) throw new Error(`the archive has no package ${missing.join(', ')}`);
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function closure(
  apt: readonly string[],
  names: readonly string[],
  keep: (name: string) => boolean,
): Promise<string[]> {
  const { stdout } = await run('apt-cache', [
    ...apt,
    'depends',
    '--recurse',
    ...['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map(
      (kind) => `--no-${kind}`,
    ),
    ...names,
  ]);
  const reached = stdout
    .split('\n')
    .filter((line) => /^[a-z0-9]/.test(line) && !line.includes(':'));
  return [...new Set([...names, ...reached.filter(keep)])].sort();
}

async function extract(
  debs: string,
  apt: readonly string[],
  packages: readonly DebianPackage[],
  root: string,
): Promise<void> {
  await mkdir(root, { recursive: true });
  await fetchMissing(debs, apt, packages);
  for (const one of packages) await run('dpkg-deb', ['-x', fileOf(debs, one), root]);
}

const fileOf = (debs: string, { name, sha256 }: DebianPackage): string =>
  join(debs, `${name}_${sha256.slice(0, 16)}.deb`);

/** In one call of apt-get: each call reads all lists again, which takes a second of a processor. */
async function fetchMissing(
  debs: string,
  apt: readonly string[],
  packages: readonly DebianPackage[],
): Promise<void> {
  const missing = packages.filter((one) => !existsSync(fileOf(debs, one)));
  if (missing.length === 0) return;
  const folder = await mkdtemp(join(debs, 'fetch-'));
  try {
    const wanted = missing.map(({ name, version }) => `${name}=${version}`);
    await run('apt-get', [...apt, 'download', '-q', ...wanted], { cwd: folder, ...patient });
    const fetched = await readdir(folder);
    for (const one of missing) {
      const file = fetched.find((each) => each.startsWith(`${one.name}_`));
      if (file === undefined) throw new Error(`apt-get fetched no package ${one.name}`);
      await rename(join(folder, file), fileOf(debs, one));
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function run(
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly timeout?: number } = {},
): Promise<{ stdout: string; stderr: string }> {
  try {
    return await execFileAsync(file, args, {
      timeout: APT_TIMEOUT_MS,
      ...options,
      maxBuffer: OUTPUT_BYTES_MAX,
      env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    });
  } catch (error) {
    const text = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`${file} failed: ${text === '' ? errorText(error) : text}`, { cause: error });
  }
}
