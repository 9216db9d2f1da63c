/** The files that a person names on a command line. */
import { readFile, writeFile } from 'node:fs/promises';
import { nodeLargeFiles } from './large-files.ts';

export interface UserFiles {
  /** Whole contents; undefined when the file does not exist. */
  readFile(path: string): Promise<Uint8Array | undefined>;
  /** The contents of a file that may be large, from its start. */
  readPieces(path: string): AsyncIterable<Uint8Array>;
  writeFile(path: string, contents: Uint8Array): Promise<void>;
}

export function nodeUserFiles(): UserFiles {
  return {
    readFile: readIfThere,
    readPieces: (path) => nodeLargeFiles().read(path),
    writeFile: (path, contents) => writeFile(path, contents),
  };
}

async function readIfThere(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
