/**
 * One version for the whole repository.
 *
 * V1 Every package.json, and every dependency on a workspace of ours, has the version of the root.
 * V2 A program that runs from its sources, without the constant of a bundle, names that version.
 * V3 The newest section of the changelog is of that version.
 */
import type { PackageManifest } from './dependencies.ts';
import type { Finding, SourceFile } from './sources.ts';

/** A package.json, with what counts here. */
export interface Versioned extends PackageManifest {
  readonly version?: string;
}

/** Manifests and their dependencies that differ from `version` (V1). */
export function findOtherVersions(manifests: readonly Versioned[], version: string): string[] {
  return manifests.flatMap((manifest) => {
    const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
    const ours = Object.entries(wanted).filter(([name]) => name.startsWith('@rackwright/'));
    return [['version', manifest.version], ...ours]
      .filter(([, found]) => found !== version)
      .map(([what, found]) => `${manifest.name}: ${what} is ${found}, not ${version}`);
  });
}

const bundled = /\bRACKWRIGHT_PACKAGE_VERSION\b/;
const literal = /'(\d+\.\d+\.\d+)'/g;

/** Versions that a file with the constant of bundles falls back to, other than `version` (V2). */
export function findOtherFallbacks(file: SourceFile, version: string): Finding[] {
  if (!bundled.test(file.text)) return [];
  return [...file.text.matchAll(literal)]
    .filter(([, found]) => found !== version)
    .map(([, found]) => ({ path: file.path, line: 0, message: `${found} is not ${version}` }));
}

/** The first section of a changelog (V3). */
export interface Section {
  readonly version: string;
  /** Undefined: not released yet. */
  readonly date: string | undefined;
}

/** Reads `## 1.2.3 (2026-01-31)` or `## 1.2.3 (unreleased)`. Throws when there is no such line. */
export function newestVersion(changelog: string): Section {
  const found = /^## (\d+\.\d+\.\d+) \((unreleased|\d{4}-\d{2}-\d{2})\)$/m.exec(changelog);
  const [, version, date] = found ?? [];
  if (version === undefined) throw new Error('CHANGELOG.md has no "## VERSION (DATE)"');
  return { version, date: date === 'unreleased' ? undefined : date };
}
