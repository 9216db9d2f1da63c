/**
 * Tables and paths of documents against the repository: which folders there are, and what each
 * workspace depends on.
 */
import { posix } from 'node:path';
import type { Finding, SourceFile } from './sources.ts';

/** A row of a table that begins with "folder". */
interface Row {
  readonly line: number;
  /** The folder that the names of the table are below: from the header, "folder of `NAME`". */
  readonly base: string;
  /** Whether the header names that folder, so that the table has each folder in it. */
  readonly isWhole: boolean;
  readonly names: readonly string[];
  readonly cells: readonly string[];
}

/** Folders of tests and of what only tests use; a table of folders does not need them. */
const testFolders = new Set(['testing', 'conformance']);

function rowsIn(file: SourceFile): Row[] {
  let header: readonly string[] | undefined;
  return file.text.split('\n').flatMap((text, index) => {
    const cells = text.startsWith('|') ? text.split('|').slice(1, -1) : [];
    const [first = ''] = cells;
    if (cells.length === 0) header = undefined;
    header ??= cells.length === 0 ? undefined : cells;
    if (header === undefined || header === cells || /^-+$/.test(first.trim())) return [];
    const [title = ''] = header;
    if (!title.trim().startsWith('folder')) return [];
    const [, folder = ''] = /^folder of `([^`]+)`/.exec(title.trim()) ?? [];
    const links = [...first.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
    const quoted = [...first.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const names = (links.length > 0 ? links : quoted).map((name) => name.replace(/\/$/, ''));
    const base = posix.join(posix.dirname(file.path), folder);
    return [{ line: index + 1, base, isWhole: folder !== '', names, cells }];
  });
}

function existsIn(paths: readonly string[], path: string): boolean {
  return paths.some((each) => each === path || each.startsWith(`${path}/`));
}

/** Rows of folders that do not exist, and folders that a table of all folders lacks. */
export function findFolderFaults(file: SourceFile, paths: readonly string[]): Finding[] {
  const rows = rowsIn(file);
  const missing = rows.flatMap(({ line, base, names }) =>
    names
      .filter((name) => !existsIn(paths, posix.join(base, name)))
      .map((name) => ({ path: file.path, line, message: `there is no ${posix.join(base, name)}` })),
  );
  const bases = new Set(rows.filter(({ isWhole }) => isWhole).map(({ base }) => base));
  const unlisted = [...bases].flatMap((base) => {
    const listed = rows.flatMap((row) => (row.base === base ? row.names : []));
    const folders = new Set(
      paths
        .filter((path) => path.startsWith(`${base}/`) && posix.dirname(path) !== base)
        .map((path) => posix.relative(base, path).split('/')[0] ?? ''),
    );
    return [...folders]
      .filter((folder) => !testFolders.has(folder) && !listed.includes(folder))
      .map((folder) => ({ path: file.path, line: 0, message: `no row names ${base}/${folder}` }));
  });
  return [...missing, ...unlisted];
}

/** A segment that stands for a name of the reader's own. */
const placeholder = /(^|\/)[A-Z]+(\/|$)/;

/** Paths in backquotes that lead to nothing: from the root, or from the document's folder. */
export function findMissingPaths(file: SourceFile, paths: readonly string[]): Finding[] {
  const folder = posix.dirname(file.path);
  return file.text.split('\n').flatMap((text, index) =>
    [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+)\/?`/g)].flatMap(([, path = '']) => {
      const [first = ''] = path.split('/');
      const bases = ['', folder].filter((base) => existsIn(paths, posix.join(base, first)));
      if (bases.length === 0 || placeholder.test(path)) return [];
      if (bases.some((base) => existsIn(paths, posix.join(base, path)))) return [];
      return [{ path: file.path, line: index + 1, message: `there is no ${path}` }];
    }),
  );
}

/** Words of the last column that stand for all workspaces below; no list is compared with them. */
const collective = new Set(['packages', 'everything']);

/** Rows whose last column, "depends on", differs from the golden graph of the dependencies. */
export function findDependencyFaults(file: SourceFile, graph: string): Finding[] {
  const edges = new Map<string, readonly string[]>();
  for (const line of graph.split('\n')) {
    const [, name = '', isTest, needs = ''] = /^(\S+)( \(tests\))? → (.*)$/.exec(line) ?? [];
    if (isTest === undefined) edges.set(name, needs.split(' '));
    // A workspace that imports nothing has a line of its tests alone.
    else edges.set(name, edges.get(name) ?? []);
  }
  return rowsIn(file).flatMap(({ line, names, cells }) => {
    const told = (cells.at(-1) ?? '').trim();
    if (collective.has(told)) return [];
    return names.flatMap((name) => {
      const needs = (edges.get(posix.basename(name)) ?? []).map((each) => each.split('/')[0] ?? '');
      const own = [...new Set(needs)].filter((each) => edges.has(each)).sort();
      if (own.join(', ') === told) return [];
      const message = `${name} depends on "${own.join(', ')}", and the table has "${told}"`;
      return [{ path: file.path, line, message }];
    });
  });
}
