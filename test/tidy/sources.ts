/** The files of the repository as the tidy checks see them: paths from its root, and their text. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The repository's root folder. */
export const root = join(import.meta.dirname, '..', '..');

/** Lets git read a clone that belongs to another user, as where root tests what was checked out. */
export const gitTrust: readonly string[] = ['-c', `safe.directory=${resolve(root)}`];

export interface SourceFile {
  /** From the root, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** What a check has found. `line` counts from 1; 0 means the whole file. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** As editors like it: `path:line message`. */
export function describeFinding(finding: Finding): string {
  return `${finding.path}:${finding.line} ${finding.message}`;
}

/** Paths that git tracks or would track, without those deleted in the work tree. */
export function repositoryPaths(): string[] {
  const args = [...gitTrust, 'ls-files', '-z', '-co', '--exclude-standard'];
  const output = execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const paths = output.split('\0').filter((path) => path !== '');
  return [...new Set(paths)].filter((path) => existsSync(join(root, path))).sort();
}

export function readSources(paths: readonly string[]): SourceFile[] {
  return paths.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** Generated code is exempt from every check but freshness. */
export function isGenerated(path: string): boolean {
  return path.startsWith('packages/messages/src/gen/');
}

export function isTypeScript(path: string): boolean {
  return /\.tsx?$/.test(path) && !isGenerated(path);
}

/**
 * Tests and what only tests use: a `conformance` or `testing` folder, and beside the code
 * `test-….ts`, `….fixture.ts`, and `subject.ts`, what a conformance suite judges. Bans that protect
 * determinism do not hold there.
 */
export function isTestCode(path: string): boolean {
  return testPlaces.some((place) => place.test(path));
}

const testPlaces: readonly RegExp[] = [
  /^test\//,
  /^vitest\.config\.ts$/,
  /\.(test|fixture)\.ts$/,
  /\/(conformance|testing)\//,
  /\/(subject|test-[^/]+)\.ts$/,
];
