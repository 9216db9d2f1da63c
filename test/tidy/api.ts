/**
 * Generated code equals what `proto/` generates, and the API does not break its clients.
 *
 * A1 `findStale` generates into a folder of its own and compares names and bytes.
 * A2 The definitions break nobody who was built against the last release. `released` is that
 *    release as compiled descriptors (a buf image), so the comparison needs no git history.
 * A3 An image that breaks the one it replaces is a deliberate break: a commit message since has a
 *    line `API-BREAK: why`.
 * A4 At a release the image is that of the definitions. The changelog says whether this is one.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { folderInClone } from '../run-folder.ts';
import { typeIds } from './ids.ts';
import { gitTrust, root } from './sources.ts';

/** The descriptors of the last release; `npm run gen -- --released` writes them (A2). */
export const released = join(root, 'proto', 'released.binpb');

/** The generated messages. */
export const generated = join(root, 'packages', 'messages', 'src', 'gen');

/** A folder of its own in this clone, removed after `use`. */
export function inScratch<T>(use: (folder: string) => T): T {
  const folder = folderInClone('tidy-');
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
    if (complaints.length > 0) return complaints;
    typeIds(folder);
    return compareFolders(folder, generated);
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

/** The commit of the image before: the last release, else the branch point, else the parent. */
export function chooseBase(history: History): Base {
  const branchPoint = history.mergeBase === history.head ? undefined : history.mergeBase;
  const commit = history.release ?? branchPoint ?? history.parent;
  if (commit !== undefined) return { kind: 'commit', commit };
  return { kind: 'none', reason: 'this clone holds no earlier commit to compare with' };
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

/** Why the API was broken deliberately since `base`, if it was (A3). */
export function declaredBreak(base: string): string | undefined {
  const messages = git('log', '--format=%B', `${base}..HEAD`) ?? '';
  return /^API-BREAK: *(\S.*)$/m.exec(messages)?.[1];
}

/** What a client built against `image`, a file, would trip over in `protoFolder` (A2). */
export function findBreaks(protoFolder: string, image: string): string[] {
  return inScratch((folder) => {
    const present = join(folder, 'present.binpb');
    const complaints = buf(protoFolder, 'build', '-o', present);
    return complaints.length > 0 ? complaints : compareImages(present, image);
  });
}

/** What a client built against `before` would trip over in `after`; both are image files. */
export function compareImages(after: string, before: string): string[] {
  const { modules } = parse(readFileSync(join(root, 'proto', 'buf.yaml'), 'utf8'));
  const config = JSON.stringify({ version: 'v2', breaking: modules[0].breaking });
  return buf(root, 'breaking', after, '--against', before, '--config', config);
}

/** What the present image breaks of the one at commit `base`; none when that had no image (A3). */
export function findImageBreaks(base: string): string[] {
  return inScratch((folder) => {
    const args = [...gitTrust, 'show', `${base}:proto/released.binpb`];
    const shown = spawnSync('git', args, { cwd: root });
    if (shown.status !== 0) return [];
    const before = join(folder, 'before.binpb');
    writeFileSync(before, shown.stdout);
    return compareImages(released, before);
  });
}

/** True when `image` holds just what `protoFolder` defines. */
export function isImageOf(image: string, protoFolder: string): boolean {
  return inScratch((folder) => {
    const present = join(folder, 'present.binpb');
    const complaints = buf(protoFolder, 'build', '--exclude-source-info', '-o', present);
    return complaints.length === 0 && readFileSync(present).equals(readFileSync(image));
  });
}

function git(...args: string[]): string | undefined {
  const done = spawnSync('git', [...gitTrust, ...args], { cwd: root, encoding: 'utf8' });
  const answer = done.stdout.trim();
  return done.status === 0 && answer !== '' ? answer : undefined;
}
