/**
 * What package-lock.json may hold.
 *
 * P1 Nothing compiles at install: packages with install scripts are a closed list, and npm runs
 *    none of their scripts (`ignore-scripts` in .npmrc).
 * P2 No registry's address: the clone installs from whatever registry its machine is set to.
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
    if (!isOurs && entry.integrity === undefined) {
      faults.push(`${name} has no integrity hash`);
    }
    return faults;
  });
}
