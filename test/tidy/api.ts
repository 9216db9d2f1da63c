/**
 * Generated code equals what `proto/` generates, and the API does not break its clients.
 *
 * A1 `findStale` generates into a folder of its own and compares names and bytes.
 * A2 The API is compared with what others may have built on: `chooseBase` says which commit that
 *    is. A deliberate break is a commit whose message has a line `API-BREAK: why`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { gitTrust, root } from './sources.ts';

const generated = join(root, 'packages', 'api', 'src', 'gen');

/** A folder of its own under `.cache`, removed after `use`. */
export function inScratch<T>(use: (folder: string) => T): T {
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache', 'tidy-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Runs buf in a folder of definitions and answers what it complained about; empty when well. */
export function buf(folder: string, ...args: string[]): string[] {
  const bin = join(root, 'node_modules', '.bin');
  const done = spawnSync(join(bin, 'buf'), args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
  });
  if (done.status === 0) return [];
  const lines = `${done.stdout}${done.stderr}${done.error?.message ?? ''}`.trim().split('\n');
  return [`buf ${args[0]} ended with ${done.status}`, ...lines];
}

/** Names of generated files that are missing, extra or different (A1). */
export function findStale(protoFolder: string): string[] {
  return inScratch((folder) => {
    const template = parse(readFileSync(join(root, 'proto', 'buf.gen.yaml'), 'utf8'));
    const plugins = template.plugins.map((plugin: object) => ({ ...plugin, out: folder }));
    const json = JSON.stringify({ version: template.version, plugins });
    const complaints = buf(protoFolder, 'generate', '--template', json);
    return complaints.length > 0 ? complaints : compareFolders(folder, generated);
  });
}

function compareFolders(wanted: string, found: string): string[] {
  const wantedNames = filesOf(wanted);
  const foundNames = filesOf(found);
  const different = wantedNames.filter((name) => {
    if (!foundNames.includes(name)) return true;
    return !readFileSync(join(wanted, name)).equals(readFileSync(join(found, name)));
  });
  return [...different, ...foundNames.filter((name) => !wantedNames.includes(name))];
}

function filesOf(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** What git knows of the past, each a commit or undefined. */
export interface History {
  readonly head: string | undefined;
  /** The newest release tag before this commit. */
  readonly release: string | undefined;
  /** Where this branch left main. */
  readonly mergeBase: string | undefined;
  readonly parent: string | undefined;
}

export type Base =
  | { readonly kind: 'commit'; readonly commit: string }
  | { readonly kind: 'none'; readonly reason: string };

/** The commit to compare the API with: the last release, else the branch point, else the parent. */
export function chooseBase(history: History): Base {
  const branchPoint = history.mergeBase === history.head ? undefined : history.mergeBase;
  const commit = history.release ?? branchPoint ?? history.parent;
  if (commit !== undefined) return { kind: 'commit', commit };
  return { kind: 'none', reason: 'this clone holds no earlier commit to compare the API with' };
}

export function readHistory(): History {
  return {
    head: git('rev-parse', 'HEAD'),
    release: withApi(git('describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*', 'HEAD')),
    mergeBase: withApi(
      git('merge-base', 'HEAD', 'origin/main') ?? git('merge-base', 'HEAD', 'main'),
    ),
    parent: withApi(git('rev-parse', 'HEAD~1')),
  };
}

/** The commit, if it holds definitions at all: the first ones of this repository do not. */
function withApi(commit: string | undefined): string | undefined {
  if (commit === undefined) return undefined;
  return git('ls-tree', commit, 'proto') === undefined ? undefined : commit;
}

/** Why the API was broken deliberately since `base`, if it was (A2). */
export function declaredBreak(base: string): string | undefined {
  const messages = git('log', '--format=%B', `${base}..HEAD`) ?? '';
  return /^API-BREAK: *(\S.*)$/m.exec(messages)?.[1];
}

/** What a client of the API at `base` would trip over in `protoFolder`. */
export function findBreaks(protoFolder: string, base: string): string[] {
  return inScratch((folder) => {
    const archive = execFileSync('git', [...gitTrust, 'archive', base, 'proto'], { cwd: root });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    return buf(protoFolder, 'breaking', '--against', join(folder, 'proto'));
  });
}

function git(...args: string[]): string | undefined {
  const done = spawnSync('git', [...gitTrust, ...args], { cwd: root, encoding: 'utf8' });
  const answer = done.stdout.trim();
  return done.status === 0 && answer !== '' ? answer : undefined;
}
