/**
 * Large files on the real disk.
 *
 * L1 After `sync` and `rename` the final name holds the whole contents, also after a power cut.
 * L2 Nothing is held in memory but the piece that is being read or written.
 */
import { createReadStream } from 'node:fs';
import { open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LargeFile, LargeFiles, PartFile } from '../large-files.ts';

const ownerOnlyMode = 0o600;
const readBytesAtOnce = 256 * 1024;

/** The large files of this machine. */
export function nodeLargeFiles(): LargeFiles {
  return {
    list,
    openPart,
    read: (path) => createReadStream(path, { highWaterMark: readBytesAtOnce }),
    rename: async (from, to) => {
      await rename(from, to);
      await syncFolder(dirname(to));
    },
    touch: async (path, atMs) => utimes(path, new Date(atMs), new Date(atMs)),
    remove: async (path) => rm(path, { force: true }),
    removeFolder: async (path) => rm(path, { force: true, recursive: true }),
  };
}

async function list(folder: string): Promise<LargeFile[]> {
  const found: LargeFile[] = [];
  for (const entry of await entriesOf(folder)) {
    if (!entry.isFile()) continue;
    const { size, mtimeMs } = await stat(join(folder, entry.name));
    found.push({ name: entry.name, sizeBytes: size, usedAtMs: mtimeMs });
  }
  return found;
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

async function openPart(path: string): Promise<PartFile> {
  const file = await open(path, 'a', ownerOnlyMode);
  const { size: sizeBytes } = await file.stat();
  return {
    sizeBytes,
    write: (bytes) => file.writeFile(bytes),
    empty: () => file.truncate(0),
    sync: () => file.sync(),
    close: () => file.close(),
  };
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
