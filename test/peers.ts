/**
 * `npm run peers`: brings the programs that our tests talk to onto this machine.
 *
 * 1. What `test/peers.txt` lists is installed by apt, without recommends (root).
 * 2. `nats-server` is fetched, verified and unpacked into `.cache/peers/nats-server`; nothing is
 *    installed. Debian's newest stable release has 2.10.27, the floor of our store; the machine's
 *    own release may have an older one.
 * 3. Servers that only benchmarks and tests start by themselves, and the signed boot loaders of the
 *    lab's machines, are unpacked into `.cache/peers/unpacked`, from the machine's own release:
 *    Debian would start the servers at once and cannot install some of them together, and would put
 *    the loaders in place of this machine's own.
 * 4. With `--ironic` (root) a root folder of Debian with OpenStack Ironic is made, into
 *    `.cache/peers/ironic.tar`: what a benchmark compares with, of 200 packages.
 * 5. With `--arm64` (root) QEMU, UEFI firmware and U-Boot for arm64 are installed, and the signed
 *    boot loaders for it are unpacked into `.cache/peers/unpacked-arm64`: for two rows of the
 *    matrix of the lab.
 * 6. A second call finds everything present and changes nothing.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { errorText } from '@rackwright/platform';
import { type DebianArchive, openArchive } from '@rackwright/runner/ramdisk';
import { debianRoot } from './lab/debian-root.ts';
import { UNPACKED, UNPACKED_ARM64 } from './peers-tests/peer.ts';
import { programArguments } from './program-arguments.ts';

const ROOT = join(import.meta.dirname, '..');
/** Where the tests find the fetched server. */
export const NATS_SERVER = join(ROOT, '.cache/peers/nats-server');
/** Where the benchmark of host lives finds Ironic. */
export const IRONIC_ROOT = join(ROOT, '.cache/peers/ironic.tar');
/** Older servers acknowledged two winners of one compare-and-set. */
export const NATS_FLOOR: readonly [number, number, number] = [2, 10, 27];
const SUITES = ['trixie', 'sid'];
/** What is used without being installed; the programs' libraries are in Debian's base. */
const UNPACKED_PACKAGES = [
  ...['atftpd', 'nginx', 'tftpd-hpa'],
  ...['shim-signed', 'grub-efi-amd64-signed'],
];
const ARM64_MACHINE_PACKAGES = ['qemu-system-arm', 'qemu-efi-aarch64', 'u-boot-qemu'];
const ARM64_LOADER_PACKAGES = ['shim-signed', 'grub-efi-arm64-signed'];

/** The package names in the text of `peers.txt`. */
export function parsePeers(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '');
}

/** True when `text` (what `nats-server --version` prints) names a version at or above the floor. */
export function isNewEnough(text: string): boolean {
  const match = /v(\d+)\.(\d+)\.(\d+)/.exec(text);
  if (match === null) return false;
  const version = match.slice(1).map(Number);
  for (const [index, least] of NATS_FLOOR.entries()) {
    const part = version[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

/** Of `names`, those that dpkg does not know as installed. */
function missingPackages(names: readonly string[]): string[] {
  const query = spawnSync(
    'dpkg-query',
    ['-W', '-f', '${db:Status-Abbrev}|${Package}\n', ...names],
    {
      encoding: 'utf8',
    },
  );
  if (query.error !== undefined) throw new Error('dpkg-query is missing: peers need Debian');
  const installed = new Set(
    query.stdout
      .split('\n')
      .filter((line) => line.startsWith('ii'))
      .map((line) => line.split('|')[1]),
  );
  return names.filter((name) => !installed.has(name));
}

function install(names: readonly string[]): void {
  const missing = missingPackages(names);
  if (missing.length === 0) {
    say(`all ${names.length} Debian packages are installed`);
    return;
  }
  if (process.getuid?.() !== 0) {
    throw new Error(
      `these Debian packages are missing: ${missing.join(' ')}; run "npm run peers" as root`,
    );
  }
  apt(['update', '-q'], 'the package lists cannot be fetched; is the package mirror reachable?');
  try {
    apt(['install', '-y', '-q', '--no-install-recommends', ...missing], '');
  } catch {
    installOneByOne(missing);
  }
  say(`installed ${missing.join(' ')}`);
}

/** After a failure of the whole set: what can be installed is, and each failure gets its line. */
function installOneByOne(names: readonly string[]): void {
  const failures: string[] = [];
  for (const name of names) {
    try {
      apt(['install', '-y', '-q', '--no-install-recommends', name], '');
    } catch (error) {
      failures.push(`${name}: ${errorText(error)}`);
    }
  }
  if (failures.length > 0) throw new Error(`not installed:\n  ${failures.join('\n  ')}`);
}

function apt(args: readonly string[], advice: string): void {
  const done = spawnSync('apt-get', args, {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
    timeout: 900_000,
  });
  if (done.status === 0) return;
  const errors = (done.stderr ?? '').split('\n').filter((line) => line.startsWith('E:'));
  throw new Error([`apt-get ${args[0]} failed`, ...errors, advice].filter(Boolean).join('; '));
}

async function fetchNatsServer(): Promise<void> {
  if (existsSync(NATS_SERVER) && isNewEnough(natsVersion(NATS_SERVER))) {
    say(`nats-server is there: ${natsVersion(NATS_SERVER)}`);
    return;
  }
  const failures: string[] = [];
  for (const suite of SUITES) {
    try {
      await fetchFrom(suite);
      say(`nats-server fetched from ${suite}: ${natsVersion(NATS_SERVER)}`);
      return;
    } catch (error) {
      failures.push(`${suite}: ${errorText(error)}`);
    }
  }
  throw new Error(`nats-server could not be fetched:\n  ${failures.join('\n  ')}`);
}

async function fetchFrom(suite: string): Promise<void> {
  const archive = await openArchive({
    folder: join(ROOT, '.cache/apt', suite),
    suite,
    now: Date.now(),
  });
  const root = join(ROOT, '.cache/peers', `extract-${suite}-${process.pid}`);
  try {
    await archive.extract(await archive.describe(['nats-server']), root);
    const binary = ['usr/bin/nats-server', 'usr/sbin/nats-server']
      .map((path) => join(root, path))
      .find((path) => existsSync(path));
    if (binary === undefined) throw new Error('the package has no nats-server program');
    const version = natsVersion(binary);
    if (!isNewEnough(version)) {
      throw new Error(`${version} is older than ${NATS_FLOOR.join('.')}`);
    }
    mkdirSync(join(ROOT, '.cache/peers'), { recursive: true });
    copyFileSync(binary, `${NATS_SERVER}.new`);
    chmodSync(`${NATS_SERVER}.new`, 0o755);
    renameSync(`${NATS_SERVER}.new`, NATS_SERVER);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Anew only when the archive has other versions. */
async function unpackPackages(
  archive: DebianArchive,
  names: readonly string[],
  folder: string,
): Promise<void> {
  const packages = await archive.describe(names);
  const versions = packages.map(({ name, version }) => `${name} ${version}\n`).join('');
  const stamp = join(folder, 'versions');
  const text = versions.trim().replaceAll('\n', ', ');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === versions) {
    say(`unpacked packages are there: ${text}`);
    return;
  }
  const fresh = `${folder}.new-${process.pid}`;
  try {
    await archive.extract(packages, fresh);
    writeFileSync(join(fresh, 'versions'), versions);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  say(`unpacked ${text}`);
}

/** Servers and loaders for this machine. */
async function unpackOwn(): Promise<void> {
  const archive = await openArchive({ folder: join(ROOT, '.cache/apt/own'), now: Date.now() });
  await unpackPackages(archive, UNPACKED_PACKAGES, UNPACKED);
}

/** What machines of arm64 need. */
async function addArm64(): Promise<void> {
  install(ARM64_MACHINE_PACKAGES);
  const architecture = 'arm64';
  const folder = join(ROOT, '.cache/apt', architecture);
  const archive = await openArchive({ folder, architecture, now: Date.now() });
  await unpackPackages(archive, ARM64_LOADER_PACKAGES, UNPACKED_ARM64);
}

function natsVersion(file: string): string {
  try {
    return execFileSync(file, ['--version'], { encoding: 'utf8' }).trim();
  } catch (error) {
    return `unusable (${errorText(error)})`;
  }
}

function say(text: string): void {
  process.stdout.write(`peers: ${text}\n`);
}

async function makeIronicRoot(): Promise<void> {
  const packages = ['ironic-api', 'ironic-conductor', 'python3-ironic'];
  await debianRoot(IRONIC_ROOT, [
    '--variant=minbase',
    '--aptopt=APT::Install-Recommends "false"',
    `--include=${packages.join(',')}`,
  ]);
  say(`a root with Ironic is there: ${IRONIC_ROOT}`);
}

async function main(): Promise<number> {
  const { values } = programArguments({
    options: { arm64: { type: 'boolean' }, ironic: { type: 'boolean' } },
  });
  let failed = 0;
  const names = parsePeers(readFileSync(join(import.meta.dirname, 'peers.txt'), 'utf8'));
  const parts = [() => Promise.resolve(install(names)), fetchNatsServer, unpackOwn];
  if (values.arm64 === true) parts.push(addArm64);
  if (values.ironic === true) parts.push(makeIronicRoot);
  for (const part of parts) {
    try {
      await part();
    } catch (error) {
      failed += 1;
      process.stderr.write(`peers: ${errorText(error)}\n`);
    }
  }
  return failed === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main();
