/**
 * What package-lock.json may hold.
 *
 * P1 Nothing compiles at install: packages with install scripts are a closed list, and npm runs
 *    none of their scripts (`ignore-scripts` in .npmrc).
 * P2 No registry's address: the clone installs from whatever registry its machine is set to.
 * P3 Every optional package has an entry, those for other systems too: `npm ci` refuses a lock
 *    file without them, and npm leaves them out when its registry lacks them. Such entries have
 *    no hash, and need none: they are never installed where we run.
 */

/** Packages that have install scripts and work without them, with the reason. */
export const scriptsNotNeeded: Readonly<Record<string, string>> = {
  '@bufbuild/buf': 'only checks that the optional package for this processor is there',
  esbuild: 'only replaces a launcher that works as it is',
  protobufjs: 'only prints a warning about version ranges',
};

interface LockEntry {
  readonly hasInstallScript?: boolean;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** True for packages that npm leaves out on Linux with glibc on x86-64 and arm64. */
function isForeign({ optional, os, cpu, libc }: LockEntry): boolean {
  const isOurs =
    (os ?? ['linux']).includes('linux') &&
    (cpu ?? ['x64']).some((one) => one === 'x64' || one === 'arm64') &&
    (libc ?? ['glibc']).includes('glibc');
  return optional === true && !isOurs;
}

/** What is wrong with a lock file's text. */
export function findLockFaults(text: string): string[] {
  const { packages }: { packages: Record<string, LockEntry> } = JSON.parse(text);
  return Object.entries(packages).flatMap(([path, entry]) => {
    const name = path.replace(/^.*node_modules\//, '');
    const faults: string[] = [];
    if (entry.hasInstallScript === true && !Object.hasOwn(scriptsNotNeeded, name)) {
      faults.push(`${name} wants to run a script at install; choose another package`);
    }
    if (/^[a-z+]+:/.test(entry.resolved ?? '')) {
      faults.push(`${name} is bound to ${entry.resolved}; .npmrc must omit it`);
    }
    const isOurs = !path.startsWith('node_modules/') || entry.link === true;
    if (!isOurs && entry.integrity === undefined && !isForeign(entry)) {
      faults.push(`${name} has no integrity hash`);
    }
    for (const optional of Object.keys(entry.optionalDependencies ?? {})) {
      if (packages[`node_modules/${optional}`] !== undefined) continue;
      if (packages[`${path}/node_modules/${optional}`] !== undefined) continue;
      faults.push(`${optional}, which ${name} may use, has no entry: npm run lock adds it`);
    }
    return faults;
  });
}
