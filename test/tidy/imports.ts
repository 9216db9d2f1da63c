/**
 * What imports what: the graph of workspaces, and files that nothing reaches.
 *
 * I1 A relative import stays inside its workspace: others are reached by name, through `exports`.
 *    The fuzzer alone reaches into the others, for a parser is hardly ever an export.
 */
import { posix } from 'node:path';
import { codeOf } from './code-text.ts';
import type { Finding, SourceFile } from './sources.ts';
import { isTestCode } from './sources.ts';

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** The whole statement, with the names that it imports. */
  readonly statement: string;
}

const importing =
  /(?:^|\n)\s*(?:import|export)\b[^'";]*?from\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

/** Imports, re-exports and dynamic imports with a literal specifier. */
export function importsOf(text: string): Import[] {
  const code = codeOf(text);
  return [...text.matchAll(importing)].flatMap((found) => {
    const start = found.index + found[0].search(/\S/);
    // What the code does not say at this place stood in a comment or a text.
    if (!/^(import|export)\b/.test(code.slice(start))) return [];
    return [
      {
        specifier: found[1] ?? found[2] ?? found[3] ?? '',
        line: text.slice(0, found.index + found[0].length).split('\n').length,
        statement: found[0].trim(),
      },
    ];
  });
}

/** The workspace of a path: "dhcp" below `packages/dhcp/`, "agent" below `agent/`. */
export function workspaceOf(path: string): string {
  const parts = path.split('/');
  return (parts[0] === 'packages' ? parts[1] : parts[0]) ?? '';
}

const reachesAll = /^(vitest\.config\.ts|test\/fuzz\/([\w-]+|targets\/[\w-]+)\.ts)$/;

/** Relative imports that leave their workspace (I1). */
export function findEscapes(file: SourceFile): Finding[] {
  return importsOf(file.text).flatMap(({ specifier, line }) => {
    if (!specifier.startsWith('.')) return [];
    const target = posix.join(posix.dirname(file.path), specifier);
    const workspace = workspaceOf(target);
    if (workspace === workspaceOf(file.path) || reachesAll.test(file.path)) return [];
    const message = `"${specifier}" reaches into ${workspace}; import it by name`;
    return [{ path: file.path, line, message }];
  });
}

/**
 * The golden text: one line per workspace and kind of code, with all that it imports: workspaces
 * by their short name, packages of others by theirs, and, but for tests, Node's own modules.
 */
export function describeGraph(files: readonly SourceFile[]): string {
  const edges = new Map<string, Set<string>>();
  for (const file of files) {
    const own = workspaceOf(file.path);
    const isTest = isTestCode(file.path);
    const from = isTest && own !== 'test' ? `${own} (tests)` : own;
    for (const { specifier } of importsOf(file.text)) {
      const target = targetOf(specifier);
      if (target === undefined || target === own) continue;
      if (isTest && target.startsWith('node:')) continue;
      edges.set(from, (edges.get(from) ?? new Set()).add(target));
    }
  }
  const lines = [...edges].map(([from, targets]) => `${from} → ${[...targets].sort().join(' ')}`);
  return `${lines.sort().join('\n')}\n`;
}

function targetOf(specifier: string): string | undefined {
  if (specifier.startsWith('.')) return undefined;
  if (specifier.startsWith('node:')) return specifier;
  const own = /^@rackwright\/([^/]+)(\/.*)?$/.exec(specifier);
  if (own !== null) return `${own[1]}${own[2] ?? ''}`;
  return packageOf(specifier);
}

/** The package of a specifier: `@a/b/c` is of `@a/b`. */
export function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
}

/**
 * Files that no file imports or names by its path; tests and `main.ts` files start by themselves,
 * and a page starts `main.tsx`. `mentions` are texts that start programs: package.json files,
 * `.ci/run`, the bootstrap.
 */
export function findDead(files: readonly SourceFile[], mentions: readonly SourceFile[]): Finding[] {
  const reached = new Set<string>();
  for (const file of files) {
    const folder = posix.dirname(file.path);
    const beside =
      /['"`](\.{1,2}\/[\w./-]+\.tsx?)['"`]|new URL\('([\w./-]+\.ts)', import\.meta\.url\)/g;
    for (const found of file.text.matchAll(beside)) {
      reached.add(posix.join(folder, found[1] ?? found[2] ?? ''));
    }
    for (const found of file.text.matchAll(
      /['"`]((?:packages|agent|controlplane|test)\/[\w./-]+\.ts)/g,
    )) {
      reached.add(found[1] ?? '');
    }
  }
  for (const { path, text } of mentions) {
    for (const found of text.matchAll(/[\w./-]+\.ts\b/g)) {
      reached.add(posix.normalize(found[0]));
      reached.add(posix.join(posix.dirname(path), found[0]));
    }
  }
  return files
    .filter(({ path }) => !/(\.test|\/main)\.tsx?$/.test(path) && !reached.has(path))
    .map(({ path }) => ({ path, line: 0, message: 'nothing imports or starts it; delete it' }));
}
