/** The files that a person names on a command line. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isAbsent } from '../absent.ts';
import { nodeLargeFiles } from './large-files.ts';

export interface UserFiles {
  /** Whole contents; undefined when the file does not exist. */
  readFile(path: string): Promise<Uint8Array | undefined>;
  /** The contents of a file that may be large, from its start. */
  readPieces(path: string): AsyncIterable<Uint8Array>;
  writeFile(path: string, contents: Uint8Array): Promise<void>;
  /** The same, whole or not at all, for its owner's eyes alone (0600); makes the folder (0700). */
  writePrivateFile(path: string, contents: Uint8Array): Promise<void>;
  /** Removes a file; one that is not there is no error. */
  removeFile(path: string): Promise<void>;
}

export function nodeUserFiles(): UserFiles {
  return {
    readFile: readIfThere,
    readPieces: (path) => nodeLargeFiles().read(path),
    writeFile: (path, contents) => writeFile(path, contents),
    writePrivateFile,
    removeFile: (path) => rm(path, { force: true }),
  };
}

/**
 * Written beside it first, so that a reader never sees a part, and no other user reads its bytes
 * meanwhile.
 */
async function writePrivateFile(path: string, contents: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.${process.pid}.new`;
  try {
    await writeFile(beside, contents, { mode: 0o600, flush: true });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

async function readIfThere(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
