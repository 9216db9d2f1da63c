/**
 * Files for TFTP, whose blocks are cut from memory: read at the first request, and released a while
 * after the last transfer.
 *
 * K1 No request waits here. A request for a file that is not in memory yet is not answered. A TFTP
 *    client repeats it (RFC 1350 §2), and the file has been read by then.
 * K2 The files in memory, including those under transfer, never exceed the limit.
 * K3 A file is checked right before each transfer. Another file under the same name is read anew.
 */
import type { Cancel, Clock, Disk, Log } from '@rackwright/platform';

/** A file whose bytes stay in memory until it is given back. */
export interface KeptFile {
  readonly kind: 'kept';
  readonly bytes: Uint8Array;
  /** To be called once, when its transfer has ended. */
  giveBack(): void;
}

export type FoundFile = KeptFile | { readonly kind: 'later' | 'tooLarge' | 'missing' };

export interface KeptFilesOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** Of all files together. */
  readonly bytesMax: number;
}

interface Entry {
  readonly bytes: Uint8Array;
  readonly version: string | undefined;
  /** Monotonic, when its version was checked last. */
  checkedAtMs: number;
  users: number;
  drop: Cancel | undefined;
}

/** After the last transfer of a file, for the hosts that boot a little later. */
const keptMs = 60_000;
/**
 * How long a check of the disk counts: until the client that caused it has asked again, and once
 * more. U-Boot repeats its request a little more than 5 s after it.
 */
const freshMs = 15_000;

export class KeptFiles {
  readonly #options: KeptFilesOptions;
  readonly #entries = new Map<string, Entry>();
  /** Being read, or found to be nothing that can be served. */
  readonly #readings = new Map<string, 'later' | 'tooLarge' | 'missing'>();
  #bytes = 0;
  #closed = false;

  constructor(options: KeptFilesOptions) {
    this.#options = options;
  }

  /** The present state of the file; `later`: it is being read into memory. */
  find(path: string): FoundFile {
    const entry = this.#entries.get(path);
    const nowMs = this.#options.clock.suspendAwareMs();
    if (entry !== undefined && nowMs - entry.checkedAtMs < freshMs) return this.#lend(path, entry);
    const reading = this.#readings.get(path);
    if (reading !== undefined && reading !== 'later') this.#readings.delete(path);
    if (reading === undefined) this.#begin(path);
    return { kind: reading ?? 'later' };
  }

  close(): void {
    this.#closed = true;
    for (const { drop } of this.#entries.values()) drop?.();
    this.#entries.clear();
  }

  #lend(path: string, entry: Entry): KeptFile {
    entry.users += 1;
    entry.drop?.();
    entry.drop = undefined;
    const { bytes } = entry;
    return { kind: 'kept', bytes, giveBack: () => this.#takeBack(path, entry) };
  }

  #takeBack(path: string, entry: Entry): void {
    entry.users -= 1;
    if (entry.users > 0 || this.#closed) return;
    // Another file has its name by now.
    if (this.#entries.get(path) !== entry) this.#bytes -= entry.bytes.length;
    else this.#dropLater(path, entry);
  }

  #dropLater(path: string, entry: Entry): void {
    entry.drop = this.#options.clock.after(keptMs, () => this.#forget(path, entry));
  }

  /** Takes a file out; one under transfer counts until its last transfer ends. */
  #forget(path: string, entry: Entry): void {
    entry.drop?.();
    this.#entries.delete(path);
    if (entry.users === 0) this.#bytes -= entry.bytes.length;
  }

  #begin(path: string): void {
    this.#readings.set(path, 'later');
    this.#load(path).then(
      (end) => {
        if (end === undefined) this.#readings.delete(path);
        else this.#readings.set(path, end);
      },
      (error: unknown) => {
        this.#readings.set(path, 'missing');
        this.#options.log.warn({ path }, 'a file for TFTP cannot be read', error);
      },
    );
  }

  /** Undefined: it is in memory, or has to wait for room. */
  async #load(path: string): Promise<'tooLarge' | 'missing' | undefined> {
    const { disk, clock, bytesMax } = this.#options;
    const found = await disk.stat(path);
    if (found === undefined) return 'missing';
    const known = this.#entries.get(path);
    if (known !== undefined) {
      if (known.version !== undefined && known.version === found.version) {
        known.checkedAtMs = clock.suspendAwareMs();
        return undefined;
      }
      this.#forget(path, known);
    }
    if (found.sizeBytes > bytesMax) return 'tooLarge';
    if (!this.#makeRoom(found.sizeBytes)) return undefined;
    this.#bytes += found.sizeBytes; // before it is read: others are read meanwhile
    let bytes: Uint8Array | undefined;
    try {
      bytes = await disk.read(path);
    } finally {
      this.#bytes -= found.sizeBytes;
    }
    if (bytes === undefined) return 'missing';
    // It grew while it was read: the next check finds it at rest.
    if (bytes.length !== found.sizeBytes || this.#closed) return undefined;
    const { version } = found;
    const entry: Entry = { bytes, version, checkedAtMs: 0, users: 0, drop: undefined };
    entry.checkedAtMs = clock.suspendAwareMs();
    this.#bytes += bytes.length;
    this.#entries.set(path, entry);
    this.#dropLater(path, entry);
    return undefined;
  }

  /** Drops files without a transfer, the longest unused first. */
  #makeRoom(bytes: number): boolean {
    for (const [path, entry] of this.#entries) {
      if (this.#bytes + bytes <= this.#options.bytesMax) break;
      if (entry.users === 0) this.#forget(path, entry);
    }
    return this.#bytes + bytes <= this.#options.bytesMax;
  }
}
