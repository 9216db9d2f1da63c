/** All files of a folder that is small and never changes while we run: the output of a build. */
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { isAbsent } from '../absent.ts';

export interface FolderBounds {
  readonly filesMax: number;
  readonly bytesMax: number;
}

/**
 * By their paths below the folder, with "/" between names; empty when there is no such folder.
 * Rejects when there are more or larger files than the bounds allow. Links are left out.
 */
export async function nodeFolderFiles(
  folder: string,
  { filesMax, bytesMax }: FolderBounds,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  let bytes = 0;
  for (const path of await pathsIn(folder)) {
    const content = await readFile(path);
    bytes += content.byteLength;
    files.set(relative(folder, path).split(sep).join('/'), content);
    if (files.size > filesMax || bytes > bytesMax) {
      throw new Error(`${folder} has more than ${filesMax} files or ${bytesMax} bytes`);
    }
  }
  return files;
}

async function pathsIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true, recursive: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort();
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}
