/** File access for programs' own state (identity, journal, keys), not for block devices. */
export interface Disk {
  /** Whole contents, or undefined when the file does not exist. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Replaces the file: temporary file, fsync, rename, fsync of the folder. `mode` like 0o600. */
  writeAtomic(path: string, contents: Uint8Array, mode: number): Promise<void>;
  /** Opens (creating if needed, mode 0600) a file that only grows. */
  openAppend(path: string): Promise<AppendFile>;
  /** Undefined when the file does not exist. */
  stat(path: string): Promise<FileStat | undefined>;
  /** Creates a folder and its parents; mode applies to those it creates. */
  makeFolder(path: string, mode: number): Promise<void>;
  remove(path: string): Promise<void>;
}

/** A file's metadata. */
export interface FileStat {
  readonly sizeBytes: number;
  /** Permission bits. */
  readonly mode: number;
  /** Changes when the contents may have changed; absent where that is unknown. */
  readonly version?: string;
  /** Whether it belongs to the user that this program runs as, or to root. */
  readonly isOurs: boolean;
}

export interface AppendFile {
  /** Appends and returns once the bytes are durable. */
  append(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}
