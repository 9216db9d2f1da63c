/** The calls by which state reaches a disk. A test replaces them by a disk that forgets. */
import { link, open, readFile, rename, rm } from 'node:fs/promises';

/** An open file or folder; the part of `FileHandle` that durability depends on. */
export interface FileCallsHandle {
  chmod(mode: number): Promise<void>;
  /**
   * Writes at the file's position: the end of a file that is opened to append. Opened with "s", it
   * answers once the bytes are durable.
   */
  writeFile(bytes: Uint8Array): Promise<void>;
  truncate(length: number): Promise<void>;
  stat(): Promise<{ readonly size: number }>;
  sync(): Promise<void>;
  datasync(): Promise<void>;
  close(): Promise<void>;
}

/** The functions of `node:fs/promises` that durability depends on. */
export interface FileCalls {
  open(path: string, flags: string, mode?: number): Promise<FileCallsHandle>;
  rename(from: string, to: string): Promise<void>;
  link(from: string, to: string): Promise<void>;
  rm(path: string, options: { readonly force: boolean }): Promise<void>;
  readFile(path: string): Promise<Uint8Array>;
}

export const nodeFileCalls: FileCalls = { open, rename, link, rm, readFile };
