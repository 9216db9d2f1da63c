/** The real file layer over a disk that forgets, for tests of code that keeps files. */
import type { Disk } from '../disk.ts';
import type { LargeFiles } from '../large-files.ts';
import { nodeDisk } from '../node/disk.ts';
import { nodeLargeFiles } from '../node/large-files.ts';
import type { ForgetfulFiles } from './forgetful-files.ts';

/** A program's own state. Its folders need not be made. */
export function forgetfulDisk(files: ForgetfulFiles): Disk {
  return {
    ...nodeDisk(files),
    stat: async (path) => {
      const found = files.find(path);
      return found && { ...found, isOurs: true };
    },
    makeFolder: async () => {},
  };
}

/** Large files. When one was used last is known until the power is cut. */
export function forgetfulLargeFiles(files: ForgetfulFiles): LargeFiles {
  const usedAtMs = new Map<string, number>();
  const find = async (path: string) => {
    const found = files.find(path);
    return found && { sizeBytes: found.sizeBytes, usedAtMs: usedAtMs.get(path) ?? 0 };
  };
  return {
    ...nodeLargeFiles(files),
    list: async (folder) => {
      return files.list(folder).map((name) => {
        const path = `${folder}/${name}`;
        const sizeBytes = files.find(path)?.sizeBytes ?? 0;
        return { name, sizeBytes, usedAtMs: usedAtMs.get(path) ?? 0 };
      });
    },
    names: async (folder) => files.list(folder),
    find,
    read: async function* (path) {
      yield await files.readFile(path);
    },
    freeBytes: async () => Number.MAX_SAFE_INTEGER,
    isSame: async (one, other) => files.isSame(one, other),
    touch: async (path, atMs) => void usedAtMs.set(path, atMs),
    remove: (path) => files.rm(path),
    removeFolder: async (folder) => {
      for (const name of files.list(folder)) await files.rm(`${folder}/${name}`);
    },
  };
}
