/**
 * The pieces of files that HTTP sends: from memory while a file is requested often enough, else
 * read into memory that is reused.
 *
 * P1 The kept bytes are bounded. A file that does not fit beside those that are being sent is read
 *    for each request, as a large one always is.
 * P2 Kept pieces are of one state of the file: the first request after a change reads anew, and a
 *    file that changes while it is read is not kept.
 * P3 A file without a request for a while is released.
 * P4 A kept piece never changes. Any other piece is the reader's until the reader says that it is
 *    done.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { versionOf } from './file-version.ts';

/** The bounds of the kept pieces, in bytes and time. */
export interface FilePiecesLimits {
  readonly keptBytesMax: number;
  /** Since the last request for it. */
  readonly keptMs: number;
}

/** Larger pieces need fewer reads, and a slow client holds two of them. */
const readBytesMax = 256 * 1024;
/** Kept pieces are shared by all requests, so only the number of reads matters. */
const keptPieceBytes = 8 * 1024 * 1024;
/** Unused memory for pieces that are not kept. */
const spareBuffersMax = 16;

/** A file that is open for one request. */
export interface OpenFile {
  /**
   * At most `bytesMax` bytes from `at` on, perhaps fewer. Rejects when there are none, or they
   * cannot be read.
   */
  piece(at: number, bytesMax: number): Promise<Piece>;
  /** To be called once. */
  close(): Promise<void>;
}

export interface Piece {
  readonly bytes: Uint8Array;
  /** To be called once, when the bytes are not needed any more (P4). */
  done(): void;
}

/** Bytes of a kept file, in their order (P4). */
export interface KeptBytes {
  readonly pieces: readonly Uint8Array[];
  /** To be called once, when they are not needed any more. */
  giveBack(): void;
}

interface CachedFile {
  readonly version: string;
  readonly sizeBytes: number;
  /** By their number; a promise while it is read. */
  readonly pieces: Map<number, Buffer | Promise<Buffer>>;
  readers: number;
  usedAtMs: number;
}

const keep = (): void => undefined;

export class FilePieces {
  readonly #limits: FilePiecesLimits;
  /** By path; the most recently used is last. */
  readonly #kept = new Map<string, CachedFile>();
  readonly #spare: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: FilePiecesLimits) {
    this.#limits = limits;
  }

  /** The bytes that are kept, or are being read to be kept (P1). */
  get keptBytes(): number {
    return [...this.#kept.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  /**
   * The bytes from `start` to before `end` of the file in this state (`FileStat.version`);
   * undefined when not all of them are in memory.
   */
  lend(path: string, version: string, start: number, end: number): KeptBytes | undefined {
    const kept = this.#kept.get(path);
    if (kept?.version !== version) return undefined;
    const pieces = piecesWithin(kept, start, end);
    if (pieces === undefined) return undefined;
    this.#use(path, kept);
    const giveBack = (): void => {
      kept.readers -= 1;
    };
    return { pieces, giveBack };
  }

  /**
   * `version`: the state in which the file was a moment ago (`FileStat.version`); without one it is
   * not kept. A file that is kept whole is not opened again. Rejects when the file cannot be
   * opened.
   */
  async open(path: string, version: string | undefined): Promise<OpenFile> {
    const known = this.#kept.get(path);
    if (version !== undefined && known?.version === version) {
      return this.#lend(path, known, new LazyFile(path, undefined));
    }
    const file = await open(path, 'r');
    try {
      const found = await file.stat({ bigint: true });
      const isKept = version !== undefined && versionOf(found) === version;
      const kept = isKept ? this.#keptFor(path, version, Number(found.size)) : undefined;
      if (kept === undefined) return this.#unkept(file);
      return this.#lend(path, kept, new LazyFile(path, file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Releases everything that is not being sent. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#kept.clear();
    this.#spare.length = 0;
  }

  #use(path: string, kept: CachedFile): void {
    kept.readers += 1;
    kept.usedAtMs = performance.now();
    this.#kept.delete(path);
    this.#kept.set(path, kept);
  }

  #lend(path: string, kept: CachedFile, file: LazyFile): OpenFile {
    this.#use(path, kept);
    return {
      piece: (at, bytesMax) => this.#pieceOf(path, kept, file, at, bytesMax),
      close: async () => {
        kept.readers -= 1;
        await file.close();
      },
    };
  }

  /** P1, P2; undefined when there is no room for it. */
  #keptFor(path: string, version: string, sizeBytes: number): CachedFile | undefined {
    // Another request may have begun to keep it meanwhile.
    const known = this.#kept.get(path);
    if (known?.version === version) return known;
    this.#kept.delete(path);
    if (!this.#makeRoom(sizeBytes)) return undefined;
    this.#timer ??= setInterval(() => this.#forgetOld(), this.#limits.keptMs).unref();
    const kept = { version, sizeBytes, pieces: new Map(), readers: 0, usedAtMs: 0 };
    this.#kept.set(path, kept);
    return kept;
  }

  /** Whether there is room beside the files that are being sent. */
  #makeRoom(sizeBytes: number): boolean {
    const { keptBytesMax } = this.#limits;
    if (sizeBytes > keptBytesMax) return false;
    let left = keptBytesMax - this.keptBytes;
    for (const [path, { readers, sizeBytes: freed }] of this.#kept) {
      if (left >= sizeBytes) break;
      if (readers > 0) continue;
      this.#kept.delete(path);
      left += freed;
    }
    return left >= sizeBytes;
  }

  #forgetOld(): void {
    const oldMs = performance.now() - this.#limits.keptMs;
    for (const [path, { readers, usedAtMs }] of this.#kept) {
      if (readers === 0 && usedAtMs < oldMs) this.#kept.delete(path);
    }
    if (this.#kept.size > 0) return;
    this.#spare.length = 0;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #pieceOf(
    path: string,
    kept: CachedFile,
    file: LazyFile,
    at: number,
    bytesMax: number,
  ): Promise<Piece> {
    const number = Math.floor(at / keptPieceBytes);
    let piece = kept.pieces.get(number);
    if (piece === undefined) {
      piece = this.#readKept(path, kept, file, number);
      kept.pieces.set(number, piece);
    }
    const whole = await piece;
    const from = at - number * keptPieceBytes;
    const bytes = whole.subarray(from, from + bytesMax);
    if (bytes.length === 0) throw new Error('the file is shorter than its slice');
    return { bytes, done: keep };
  }

  /** Forgets the whole file when it changes meanwhile, or cannot be read. */
  async #readKept(path: string, kept: CachedFile, lazy: LazyFile, number: number): Promise<Buffer> {
    try {
      const file = await lazy.opened();
      const at = number * keptPieceBytes;
      const bytes = Buffer.allocUnsafeSlow(Math.min(keptPieceBytes, kept.sizeBytes - at));
      let filled = 0;
      while (filled < bytes.length) {
        const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, at + filled);
        if (bytesRead === 0) throw new Error('the file is shorter than it was');
        filled += bytesRead;
      }
      const version = versionOf(await file.stat({ bigint: true }));
      if (version !== kept.version) throw new Error('the file changes while it is read');
      kept.pieces.set(number, bytes);
      return bytes;
    } catch (error) {
      if (this.#kept.get(path) === kept) this.#kept.delete(path);
      throw error;
    }
  }

  #unkept(file: FileHandle): OpenFile {
    return {
      piece: async (at, bytesMax) => {
        const buffer = this.#spare.pop() ?? Buffer.allocUnsafeSlow(readBytesMax);
        const done = (): void => {
          if (this.#spare.length < spareBuffersMax) this.#spare.push(buffer);
        };
        try {
          const wanted = Math.min(bytesMax, readBytesMax);
          const { bytesRead } = await file.read(buffer, 0, wanted, at);
          if (bytesRead === 0) throw new Error('the file is shorter than its slice');
          return { bytes: buffer.subarray(0, bytesRead), done };
        } catch (error) {
          done();
          throw error;
        }
      },
      close: () => file.close(),
    };
  }
}

/** See `FilePieces.lend`. */
function piecesWithin({ pieces }: CachedFile, start: number, end: number): Buffer[] | undefined {
  const found: Buffer[] = [];
  for (let at = start; at < end; ) {
    const number = Math.floor(at / keptPieceBytes);
    const piece = pieces.get(number);
    if (piece === undefined || piece instanceof Promise) return undefined;
    const from = number * keptPieceBytes;
    const bytes = piece.subarray(at - from, end - from);
    if (bytes.length === 0) return undefined;
    found.push(bytes);
    at += bytes.length;
  }
  return found;
}

/** Opened on demand: most requests are answered from kept pieces. */
class LazyFile {
  readonly #path: string;
  #file: Promise<FileHandle> | undefined;

  constructor(path: string, file: FileHandle | undefined) {
    this.#path = path;
    this.#file = file && Promise.resolve(file);
  }

  opened(): Promise<FileHandle> {
    this.#file ??= open(this.#path, 'r');
    return this.#file;
  }

  async close(): Promise<void> {
    // A file that was never opened needs no close. The caller of `open` has the error.
    const file = await this.#file?.catch(() => undefined);
    await file?.close();
  }
}
