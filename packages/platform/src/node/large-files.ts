/**
 * Large files on the real disk.
 *
 * L1 After `sync` and `rename` the final name holds the whole contents, also after a power cut.
 * L2 Nothing is held in memory but the piece that is being read or written.
 */
import { createReadStream } from 'node:fs';
import { readdir, rm, stat, statfs, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isAbsent } from '../absent.ts';
import type { LargeFile, LargeFiles, PartFile } from '../large-files.ts';
import { type FileCalls, nodeFileCalls } from './file-calls.ts';
import { syncFolder } from './sync-folder.ts';

const ownerOnlyMode = 0o600;
const readBytesAtOnce = 256 * 1024;

/** The large files of this machine, reached by `calls`. */
export function nodeLargeFiles(calls: FileCalls = nodeFileCalls): LargeFiles {
  return {
    list,
    names: async (folder) => (await entriesOf(folder)).map(({ name }) => name),
    find,
    createPart: (path) => partAt(calls, path, 'ax'),
    openPart: (path) => partAt(calls, path, 'a'),
    read: (path) => createReadStream(path, { highWaterMark: readBytesAtOnce }),
    freeBytes: async (folder) => {
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize;
    },
    rename: async (from, to) => {
      await calls.rename(from, to);
      await syncFolder(calls, dirname(to));
    },
    link: async (from, to) => {
      await calls.link(from, to);
      await syncFolder(calls, dirname(to));
    },
    isSame,
    touch: async (path, atMs) => utimes(path, new Date(atMs), new Date(atMs)),
    remove: async (path) => rm(path, { force: true }),
    removeFolder: async (path) => {
      await rm(path, { force: true, recursive: true });
      if (await exists(dirname(path))) await syncFolder(calls, dirname(path));
    },
  };
}

async function list(folder: string): Promise<LargeFile[]> {
  const found: LargeFile[] = [];
  for (const entry of await entriesOf(folder)) {
    if (!entry.isFile()) continue;
    // One that cannot be looked at is as good as none; the others are well.
    const file = await find(join(folder, entry.name)).catch(() => undefined);
    if (file !== undefined) found.push({ name: entry.name, ...file });
  }
  return found;
}

async function find(path: string): Promise<Omit<LargeFile, 'name'> | undefined> {
  try {
    const { size: sizeBytes, mtimeMs: usedAtMs } = await stat(path);
    return { sizeBytes, usedAtMs };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

async function isSame(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([filesystemOf(one), filesystemOf(other)]);
  return first !== undefined && first === second;
}

/** Which file of which file system a name is of. */
async function filesystemOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  return (await filesystemOf(path)) !== undefined;
}

async function partAt(calls: FileCalls, path: string, flags: 'a' | 'ax'): Promise<PartFile> {
  const file = await calls.open(path, flags, ownerOnlyMode);
  const { size: sizeBytes } = await file.stat();
  return {
    sizeBytes,
    write: (bytes) => file.writeFile(bytes),
    empty: () => file.truncate(0),
    sync: () => file.sync(),
    close: () => file.close(),
  };
}
