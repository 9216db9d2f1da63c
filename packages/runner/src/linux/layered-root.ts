/**
 * Unpacks the layers of an image into a folder, one over the other (image-spec, "Layer Filesystem
 * Changeset").
 *
 * U1 Nothing outside the folder is read, written or linked to: a path is followed part by part, a
 *    symbolic link on its way means what it would mean inside, and ".." ends at the folder.
 * U2 An entry at a place is removed before a new one is made there; nothing is written through a
 *    link.
 * U3 A whiteout removes entries of lower layers, and nothing of its own layer.
 * U4 Devices and pipes are left out, and named.
 *
 * Nobody else may write in the folder meanwhile.
 */
import { constants, type Stats } from 'node:fs';
import {
  chmod,
  lchown,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rm,
  symlink,
} from 'node:fs/promises';
import { join } from 'node:path';
import {
  defaultTarLimits,
  layerTarget,
  OciError,
  pathParts,
  readTar,
  type TarEntry,
} from '@rackwright/oci';
import { isAbsent } from '@rackwright/platform';
import type { UnpackLimits } from '../command/roots.ts';

/** The kernel's bound (path_resolution(7)). */
const linksFollowedMax = 40;
const targetBytesMax = 4_095;
const folderMode = 0o755;
const leftOutNamesMax = 10;

export class LayeredRoot {
  readonly #root: string;
  readonly #limits: UnpackLimits;
  /** Owners can be given by root only; for everybody else all is their own. */
  readonly #chowns: boolean;
  #entries = 0;
  #bytes = 0;
  #leftOut = 0;
  readonly #leftOutNames: string[] = [];

  /** `root` is an absolute path without links to an empty folder. */
  constructor(root: string, limits: UnpackLimits, chowns: boolean) {
    this.#root = root;
    this.#limits = limits;
    this.#chowns = chowns;
  }

  get leftOut(): { readonly count: number; readonly names: readonly string[] } {
    return { count: this.#leftOut, names: this.#leftOutNames };
  }

  /** Rejects with `OciError`, or with the file system's error; then the folder is of no use. */
  async apply(archive: AsyncIterable<Uint8Array>): Promise<void> {
    /** The entries that this layer has made (U3). */
    const made = new Set<string>();
    const limits = {
      ...defaultTarLimits,
      entriesMax: this.#limits.entriesMax - this.#entries,
      contentBytesMax: this.#limits.bytesMax - this.#bytes,
    };
    for await (const entry of readTar(archive, limits)) {
      this.#entries += 1;
      if (entry.kind === 'file') this.#bytes += entry.sizeBytes;
      await this.#put(entry, made);
    }
  }

  /** The folder at an absolute path of inside, made if it is missing. */
  async folder(path: string): Promise<string> {
    const found = await this.#follow(pathParts(path.replace(/^\/+/, '')), { makes: true });
    if (found === undefined) throw new Error('a folder that was made is missing');
    return found;
  }

  /** A folder of that name at the top, in place of every other entry of that name. */
  async ownFolder(name: string): Promise<void> {
    const path = join(this.#root, name);
    if ((await find(path))?.isDirectory() === true) return;
    await rm(path, { recursive: true, force: true });
    await mkdir(path, folderMode);
  }

  async #put(entry: TarEntry, made: Set<string>): Promise<void> {
    const target = layerTarget(entry.name);
    switch (target.kind) {
      case 'ignored':
        return;
      case 'root':
        if (entry.kind === 'folder') await chmod(this.#root, entry.mode);
        return;
      case 'whiteout':
      case 'opaque': {
        const folder = await this.#follow(target.folder, { makes: false });
        if (folder === undefined) return;
        if (target.kind === 'opaque') await removeLower(folder, made);
        else await removeUnlessMade(join(folder, target.name), made);
        return;
      }
      case 'entry': {
        const folder = await this.#follow(target.folder, { makes: true });
        if (folder === undefined) throw new Error('a folder that was made is missing');
        await this.#make(entry, join(folder, target.name));
        this.#note(folder, target.name, made);
      }
    }
  }

  /** A made entry, and every folder above it: these are entered, not removed. */
  #note(folder: string, name: string, made: Set<string>): void {
    made.add(join(folder, name));
    for (let at = folder; at.length > this.#root.length && !made.has(at); at = join(at, '..')) {
      made.add(at);
    }
  }

  async #make(entry: TarEntry, path: string): Promise<void> {
    switch (entry.kind) {
      case 'special':
        this.#leftOut += 1;
        if (this.#leftOutNames.length < leftOutNamesMax) this.#leftOutNames.push(entry.name);
        return;
      case 'folder':
        await makeFolder(path);
        break;
      case 'file':
        await replace(path);
        await writeFile(path, entry.content);
        break;
      case 'symlink':
        checkTarget(entry.target);
        await replace(path);
        await symlink(entry.target, path);
        break;
      case 'hardlink':
        await this.#link(entry.target, path);
        return;
    }
    if (this.#chowns) await lchown(path, entry.uid, entry.gid);
    // After the owner, which takes set-user-id away.
    if (entry.kind !== 'symlink') await chmod(path, entry.mode);
  }

  async #link(target: string, path: string): Promise<void> {
    const parts = pathParts(target);
    const name = parts.pop();
    const folder = name === undefined ? undefined : await this.#follow(parts, { makes: false });
    const from = folder === undefined || name === undefined ? undefined : join(folder, name);
    const found = from === undefined ? undefined : await find(from);
    if (from === undefined || found === undefined || found.isDirectory()) {
      const shown = JSON.stringify(target.slice(0, 100));
      throw new OciError('malformed', `the archive links to ${shown}, which is no file in it`);
    }
    if (from === path) return;
    await replace(path);
    await link(from, path);
  }

  /** U1: the real folder of a path inside the root; undefined when it is missing. */
  async #follow(
    path: readonly string[],
    { makes }: { readonly makes: boolean },
  ): Promise<string | undefined> {
    const inside: string[] = [];
    const left = [...path].reverse();
    let links = 0;
    for (let part = left.pop(); part !== undefined; part = left.pop()) {
      if (part === '..') {
        inside.pop();
        continue;
      }
      const at = join(this.#root, ...inside, part);
      const found = await find(at);
      if (found?.isSymbolicLink() === true) {
        links += 1;
        if (links > linksFollowedMax) throw badPath(path, 'leads through links in a circle');
        const target = await readlink(at);
        if (target.startsWith('/')) inside.length = 0;
        left.push(...target.split('/').filter(isPart).reverse());
        continue;
      }
      if (found === undefined && !makes) return undefined;
      if (found === undefined) await mkdir(at, folderMode);
      else if (!found.isDirectory()) throw badPath(path, 'stands below what is no folder');
      inside.push(part);
    }
    return join(this.#root, ...inside);
  }
}

function isPart(part: string): boolean {
  return part !== '' && part !== '.';
}

function badPath(path: readonly string[], why: string): OciError {
  const shown = JSON.stringify(path.join('/').slice(0, 100));
  return new OciError('malformed', `the archive has the folder ${shown}, which ${why}`);
}

async function find(path: string): Promise<Stats | undefined> {
  return lstat(path).catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });
}

async function makeFolder(path: string): Promise<void> {
  const found = await find(path);
  if (found?.isDirectory() === true) return;
  if (found !== undefined) await rm(path);
  await mkdir(path, folderMode);
}

/** U2. */
async function replace(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}

async function writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  const file = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  try {
    for await (const piece of content) await file.writeFile(piece);
  } finally {
    await file.close();
  }
}

function checkTarget(target: string): void {
  const isFit = target !== '' && !target.includes('\0');
  if (isFit && Buffer.byteLength(target) <= targetBytesMax) return;
  throw new OciError('malformed', 'the archive has a symbolic link to what is no path');
}

/** U3. */
async function removeUnlessMade(path: string, made: ReadonlySet<string>): Promise<void> {
  if (!made.has(path)) await rm(path, { recursive: true, force: true });
}

/** U3: empties a folder of entries of lower layers. */
async function removeLower(folder: string, made: ReadonlySet<string>): Promise<void> {
  for (const { name } of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, name);
    await removeUnlessMade(path, made);
    if ((await find(path))?.isDirectory() === true) await removeLower(path, made);
  }
}
