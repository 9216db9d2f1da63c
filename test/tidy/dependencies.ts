/**
 * What a workspace declares equals what it imports. Node finds undeclared packages too, because
 * npm lays all of them in one folder: nothing else would notice.
 */
import { importsOf, packageOf, workspaceOf } from './imports.ts';
import { isTestCode, type SourceFile } from './sources.ts';

/** The parts of a package.json that count here; versions by name. */
export interface PackageManifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Packages that a workspace imports. */
export interface Needs {
  /** Of what is shipped. */
  readonly production: ReadonlySet<string>;
  /** Of tests and build scripts. */
  readonly development: ReadonlySet<string>;
}

/** Collects what the files of one workspace import, its own name left out. */
export function needsOf(workspace: string, files: readonly SourceFile[]): Needs {
  const production = new Set<string>();
  const development = new Set<string>();
  for (const file of files.filter(({ path }) => workspaceOf(path) === workspace)) {
    const isShipped = !isTestCode(file.path) && !file.path.startsWith('packages/runner/ramdisk/');
    for (const { specifier } of importsOf(file.text)) {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue;
      if (packageOf(specifier) === `@rackwright/${workspace}`) continue;
      (isShipped ? production : development).add(packageOf(specifier));
    }
  }
  return { production, development };
}

/** Differences between a workspace's manifest and its needs; `root` may hold tools for all. */
export function findUndeclared(
  manifest: PackageManifest,
  needs: Needs,
  root: PackageManifest,
): string[] {
  const declared = manifest.dependencies ?? {};
  const forTests = { ...root.devDependencies, ...manifest.devDependencies, ...declared };
  const faults: string[] = [];
  for (const name of needs.production) {
    if (!Object.hasOwn(declared, name)) faults.push(`imports ${name}, and does not declare it`);
  }
  for (const name of needs.development) {
    if (!Object.hasOwn(forTests, name)) {
      faults.push(`imports ${name} in tests, and does not declare it`);
    }
  }
  for (const name of Object.keys(declared)) {
    if (!needs.production.has(name)) faults.push(`declares ${name}, and does not import it`);
  }
  for (const name of Object.keys(manifest.devDependencies ?? {})) {
    if (!needs.development.has(name)) faults.push(`declares ${name}, and no test imports it`);
  }
  return faults.map((fault) => `${manifest.name} ${fault}`).sort();
}

/** Versions that are a range, or differ from one workspace to another. */
export function findLooseVersions(manifests: readonly PackageManifest[]): string[] {
  const seen = new Map<string, string>();
  return manifests.flatMap(({ name, dependencies, devDependencies }) =>
    Object.entries({ ...dependencies, ...devDependencies }).flatMap(([other, version]) => {
      if (!/^(npm:@?[\w./-]+@)?\d+\.\d+\.\d+$/.test(version)) {
        return [`${name} takes ${other} as ${version}; name one version`];
      }
      const before = seen.get(other) ?? version;
      seen.set(other, before);
      return before === version ? [] : [`${name} takes ${other} ${version}, others ${before}`];
    }),
  );
}
