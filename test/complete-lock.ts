/**
 * `npm run lock`, its second half: completes package-lock.json with the optional packages of
 * other systems, which npm leaves out when its registry lacks them, and without which `npm ci`
 * refuses the file. They have no hash and are never installed where we run.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface LockEntry {
  readonly version?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];

/** How names of packages say their processor; the first that fits holds. */
const processors: readonly (readonly [word: string, cpu: string])[] = [
  ['arm64', 'arm64'],
  ['aarch64', 'arm64'],
  ['x64', 'x64'],
  ['arm', 'arm'],
  ['ia32', 'ia32'],
  ['ppc64', 'ppc64'],
  ['riscv64', 'riscv64'],
  ['s390x', 's390x'],
];

/** The same lock file with an entry for every optional package. */
export function completeLock(text: string): string {
  const lock: { packages: Record<string, LockEntry> } = JSON.parse(text);
  const packages = { ...lock.packages };
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const isThere = packages[`${path}/node_modules/${name}`] !== undefined;
      if (!isThere) packages[`node_modules/${name}`] ??= foreignEntry(name, version);
    }
  }
  const sorted = Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
  return `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`;
}

function foreignEntry(name: string, version: string): LockEntry {
  const word = name.split('/').at(-1) ?? name;
  const os = systems.find((system) => word.includes(system));
  const cpu = processors.find(([part]) => word.includes(part))?.[1];
  if (os === undefined || cpu === undefined) {
    throw new Error(`cannot tell the system of ${name}; its registry has to be reached`);
  }
  const isOurs = os === 'linux' && (cpu === 'x64' || cpu === 'arm64') && !word.includes('musl');
  if (isOurs) throw new Error(`${name} is for us, and npm did not lock it; is its registry there?`);
  const libc = os === 'linux' && word.includes('musl') ? { libc: ['musl'] } : {};
  return { version, cpu: [cpu], dev: true, ...libc, optional: true, os: [os] };
}

if (import.meta.main) {
  const path = join(import.meta.dirname, '..', 'package-lock.json');
  writeFileSync(path, completeLock(readFileSync(path, 'utf8')));
}
