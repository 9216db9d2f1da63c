/**
 * One file below a folder that is its root, written whole or not at all, and read back. No link in
 * the folder leads outside it.
 *
 * C1 Each part of the path is opened by itself, below the folder that was opened before it, and
 *    never through a link: links are read and walked here, so that "/" and ".." end at the root.
 * C2 The content has another name until it is durable; then it is renamed.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, rename, unlink } from 'node:fs/promises';
import { isAbsent } from '@rackwright/platform';
import { isMissing } from './sys-files.ts';

/** Links that are followed on the way to one file. */
const linksMax = 40;
/** The name before the rename; a file that a killed runner left is replaced. */
const temporaryName = '.rackwright-write';
const folderMode = 0o755;
const privateMode = 0o600;
const permissionBits = 0o7777;

export interface ConfinedFile {
  readonly content: Uint8Array;
  readonly mode: number;
}

/** The path leads nowhere that a file can be written to, or out of its root. */
export class BadPath extends Error {
  override readonly name = 'BadPath';
}

/** Writes the file; folders on its way are made. `path` begins with "/", which is `root`. */
export async function writeConfined(
  root: string,
  path: string,
  { content, mode }: ConfinedFile,
): Promise<void> {
  await atFile(root, path, 'make', async (folder, name) => {
    const temporary = below(folder, temporaryName);
    await unlink(temporary).catch(unlessMissing);
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, privateMode);
    try {
      await file.writeFile(content);
      await file.chmod(mode);
      await file.sync();
      await rename(temporary, below(folder, name));
    } catch (error) {
      // The next write of the file removes a leftover.
      await unlink(temporary).catch(() => undefined);
      throw error;
    } finally {
      await file.close();
    }
    await folder.sync();
  });
}

/** The content, up to one byte more than `bytesMax`. */
export async function readConfined(
  root: string,
  path: string,
  bytesMax: number,
): Promise<ConfinedFile> {
  return await atFile(root, path, 'find', async (folder, name) => {
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    const file = await open(below(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const { mode } = await file.stat();
      const content = new Uint8Array(bytesMax + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(content, length, content.length - length, length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return { content: content.slice(0, length), mode: mode & permissionBits };
    } finally {
      await file.close();
    }
  });
}

/**
 * The kernel's own name of an entry in an open folder: no part of it can be exchanged meanwhile.
 */
function below(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}

/** Walks to the folder that the file is in, and hands it on with the file's name in it. */
async function atFile<T>(
  root: string,
  path: string,
  missing: 'make' | 'find',
  act: (folder: FileHandle, name: string) => Promise<T>,
): Promise<T> {
  const opened: FileHandle[] = [];
  const enter = async (folderPath: string): Promise<FileHandle> => {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    const folder = await open(folderPath, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    opened.push(folder);
    return folder;
  };
  try {
    const { folder, name } = await walk(await enter(root), path, missing, enter);
    return await act(folder, name);
  } finally {
    for (const folder of opened) await folder.close();
  }
}

async function walk(
  root: FileHandle,
  path: string,
  missing: 'make' | 'find',
  enter: (folderPath: string) => Promise<FileHandle>,
): Promise<{ folder: FileHandle; name: string }> {
  /** From the root to where we are; the root stays. */
  let way: FileHandle[] = [root];
  let left = partsOf(path);
  for (let links = 0; ; ) {
    const [name, ...rest] = left;
    const folder = way.at(-1) ?? root;
    if (name === undefined) throw new BadPath(`${path} leads to a folder, not to a file`);
    left = rest;
    if (name === '..') {
      way = way.length > 1 ? way.slice(0, -1) : way;
      continue;
    }
    const kind = await kindOf(below(folder, name));
    if (kind === 'link') {
      links += 1;
      if (links > linksMax) throw new BadPath(`${path} leads through more than ${linksMax} links`);
      const target = await readlink(below(folder, name));
      if (target.startsWith('/')) way = [root];
      left = [...partsOf(target), ...rest];
    } else if (rest.length === 0) {
      if (kind === 'folder') throw new BadPath(`${path} is a folder`);
      if (kind === 'other') throw new BadPath(`${path} is no ordinary file`);
      return { folder, name };
    } else {
      if (kind === 'missing' && missing === 'make') await mkdir(below(folder, name), folderMode);
      if (kind === 'file' || kind === 'other') {
        throw new BadPath(`${path} leads through ${name}, which is no folder`);
      }
      way = [...way, await enter(below(folder, name))];
    }
  }
}

type Kind = 'missing' | 'folder' | 'link' | 'file' | 'other';

async function kindOf(folderPath: string): Promise<Kind> {
  try {
    const found = await lstat(folderPath);
    if (found.isSymbolicLink()) return 'link';
    if (found.isDirectory()) return 'folder';
    return found.isFile() ? 'file' : 'other';
  } catch (error) {
    if (isAbsent(error)) return 'missing';
    throw error;
  }
}

function unlessMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}
