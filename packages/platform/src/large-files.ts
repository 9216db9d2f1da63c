/** Files that are too large to be held in memory: written piece by piece, read as a stream. */

export interface LargeFile {
  readonly name: string;
  readonly sizeBytes: number;
  /** When it was last touched, wall time in milliseconds. */
  readonly usedAtMs: number;
}

export interface LargeFiles {
  /** The plain files of a folder; empty when the folder does not exist. */
  list(folder: string): Promise<readonly LargeFile[]>;
  /** The names of all that is in a folder; empty when the folder does not exist. */
  names(folder: string): Promise<readonly string[]>;
  /** The file at this path; undefined: there is none. */
  find(path: string): Promise<Omit<LargeFile, 'name'> | undefined>;
  /** Creates a file (mode 0600); throws when anything of that name exists. */
  createPart(path: string): Promise<PartFile>;
  /** Opens a file at its end, creating it (mode 0600) if needed. */
  openPart(path: string): Promise<PartFile>;
  /** The contents from the start; throws when the file cannot be read. */
  read(path: string): AsyncIterable<Uint8Array>;
  /** The bytes that this program can still write to the file system of an existing folder. */
  freeBytes(folder: string): Promise<number>;
  /** Gives a file that was synced its final name, durably; one of that name is replaced. */
  rename(from: string, to: string): Promise<void>;
  /**
   * Gives a file that was synced another name beside its own, durably; throws when anything of that
   * name exists. Both are on one file system.
   */
  link(from: string, to: string): Promise<void>;
  /** Whether both names exist and are of one file. */
  isSame(one: string, other: string): Promise<boolean>;
  /** Notes when a file was used last. */
  touch(path: string, atMs: number): Promise<void>;
  /** Does nothing when there is none. */
  remove(path: string): Promise<void>;
  /** Removes its content as well, durably; does nothing when there is none. */
  removeFolder(path: string): Promise<void>;
}

/** A file that is being written. Bytes written without `sync` may be lost or torn by a crash. */
export interface PartFile {
  /** Its size when it was opened. */
  readonly sizeBytes: number;
  write(bytes: Uint8Array): Promise<void>;
  /** Drops all that it holds. */
  empty(): Promise<void>;
  /** Resolves when all that was written is durable. */
  sync(): Promise<void>;
  close(): Promise<void>;
}
