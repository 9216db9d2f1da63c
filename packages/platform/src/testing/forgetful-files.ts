/**
 * File calls over a disk that forgets: unsynced writes are gone at a power cut. Killing a process
 * cannot show a missing sync, because the kernel keeps the page cache.
 *
 * Model: a file's bytes are durable after `sync` or `datasync` of the file, or after a write of a
 * handle for synchronous writes ("s" in its flags), and a folder's entries (names that were made,
 * renamed or removed) after `sync` of the folder. The strictest file system that POSIX allows does
 * no more.
 */
import type { FileCalls, FileCallsHandle } from '../node/file-calls.ts';

interface Inode {
  bytes: Buffer;
  durable: Buffer;
  mode: number;
}

type Entries = Map<string, Inode>;

/** Files by full path. Folders exist as soon as anything is in them. */
export class ForgetfulFiles implements FileCalls {
  #names: Entries = new Map();
  readonly #durableNames: Entries = new Map();
  /** Calls that still happen; each later one fails. */
  #callsLeft = Number.POSITIVE_INFINITY;

  /** After so many more calls that change or sync anything each one fails: the power is gone. */
  dieAfter(calls: number): void {
    this.#callsLeft = calls;
  }

  /** The machine loses its power and starts again: only synced data is there. */
  cutPower(): void {
    for (const inode of this.#durableNames.values()) inode.bytes = Buffer.from(inode.durable);
    this.#names = new Map(this.#durableNames);
    this.#callsLeft = Number.POSITIVE_INFINITY;
  }

  /** The present content, by full path. */
  find(path: string): { readonly sizeBytes: number; readonly mode: number } | undefined {
    const inode = this.#names.get(path);
    return inode && { sizeBytes: inode.bytes.length, mode: inode.mode };
  }

  /** Names of the files in a folder. */
  list(folder: string): readonly string[] {
    return [...this.#names.keys()].flatMap((path) =>
      folderOf(path) === folder ? [path.slice(folder.length + 1)] : [],
    );
  }

  /** Whether both names are of one file. */
  isSame(one: string, other: string): boolean {
    const inode = this.#names.get(one);
    return inode !== undefined && inode === this.#names.get(other);
  }

  #spend(): void {
    if (this.#callsLeft <= 0) throw new Error('no power');
    this.#callsLeft -= 1;
  }

  open = async (path: string, flags: string, mode = 0o600): Promise<FileCallsHandle> => {
    this.#spend();
    if (path.endsWith('/')) throw failure('EISDIR', path);
    const found = this.#names.get(path);
    if (found === undefined && flags === 'r') return this.#folder(path);
    if (found !== undefined && flags.includes('x')) throw failure('EEXIST', path);
    const inode = found ?? { bytes: Buffer.alloc(0), durable: Buffer.alloc(0), mode };
    this.#names.set(path, inode);
    return this.#handle(inode, flags.includes('s'));
  };

  rename = async (from: string, to: string): Promise<void> => {
    this.#spend();
    this.#names.set(to, this.#existing(from));
    this.#names.delete(from);
  };

  link = async (from: string, to: string): Promise<void> => {
    this.#spend();
    if (this.#names.has(to)) throw failure('EEXIST', to);
    this.#names.set(to, this.#existing(from));
  };

  rm = async (path: string): Promise<void> => {
    this.#spend();
    this.#names.delete(path);
  };

  readFile = async (path: string): Promise<Buffer> => Buffer.from(this.#existing(path).bytes);

  #existing(path: string): Inode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw failure('ENOENT', path);
    return inode;
  }

  #handle(inode: Inode, isSynchronous: boolean): FileCallsHandle {
    const sync = async () => {
      this.#spend();
      inode.durable = Buffer.from(inode.bytes);
    };
    return {
      chmod: async (mode) => {
        inode.mode = mode;
      },
      writeFile: async (bytes) => {
        this.#spend();
        inode.bytes = Buffer.concat([inode.bytes, bytes]);
        if (isSynchronous) await sync();
      },
      truncate: async (length) => {
        this.#spend();
        inode.bytes = Buffer.from(inode.bytes.subarray(0, length));
      },
      stat: async () => ({ size: inode.bytes.length }),
      sync,
      datasync: sync,
      close: async () => {},
    };
  }

  /** A folder that is open: syncing it makes the names in it durable. */
  #folder(path: string): FileCallsHandle {
    const isIn = (name: string) => folderOf(name) === path;
    const refuse = async () => {
      throw failure('EISDIR', path);
    };
    const sync = async () => {
      this.#spend();
      for (const name of this.#durableNames.keys()) if (isIn(name)) this.#durableNames.delete(name);
      for (const [name, inode] of this.#names) if (isIn(name)) this.#durableNames.set(name, inode);
    };
    return {
      ...{ chmod: refuse, writeFile: refuse, truncate: refuse, sync, datasync: sync },
      stat: async () => ({ size: 0 }),
      close: async () => {},
    };
  }
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
