/**
 * Transfers on their way onto a disk, until the disk has given them back.
 *
 * C1 The memory of a transfer is kept until three things have happened: the write has ended, a
 *    later flush has ended, and a read that bypasses the page cache has returned the same bytes.
 * C2 Transfers are flushed and read back in batches. Meanwhile the next batch is filled and
 *    written, so a disk of any size needs memory for two batches only.
 * C3 At the end, probes look for earlier writes that a later one has destroyed (`probes.ts`).
 * C4 When `settled` has resolved, nothing is under way any more.
 */
import { ImageError } from '@rackwright/disk-image';
import { markHandled, whenSettled } from '@rackwright/platform';
import { inFlight, transfersInFlight } from '../erase/transfers.ts';
import { DeviceError, type OpenRegion, transferBytesMax } from '../machine/block-devices.ts';
import { transferMemory } from '../machine/transfer-memory.ts';
import { Probes, probeBytes } from './probes.ts';

/** Called with the number of further bytes that were read back. */
export type ByteProgress = (bytes: number) => void;

/** Memory for one transfer. */
export interface TransferBuffer {
  readonly bytes: Uint8Array;
  /** Settles when the other reader of it is done. */
  hashed: Promise<unknown>;
}

/** Transfers of a batch: a flush for each costs little, and little is read back at the very end. */
const batchTransfers = 32;

/** A piece to read back; without bytes: zeros. */
interface Piece {
  readonly offset: number;
  readonly length: number;
  readonly bytes?: Uint8Array;
}

interface Batch {
  readonly buffers: readonly TransferBuffer[];
  used: number;
  writes: Promise<void>[];
  pieces: Piece[];
  /** All of it was read back. */
  checked: Promise<void>;
}

export class CheckedWrites {
  readonly #open: OpenRegion;
  readonly #signal: AbortSignal;
  readonly #tell: ByteProgress;
  readonly #zeros: Uint8Array;
  readonly #reads: readonly Uint8Array[];
  readonly #probes = new Probes();
  #filling: Batch;
  #other: Batch;
  /** The writes that began last. */
  readonly #underWay: Promise<void>[] = [];
  /** Batches are read back one after the other. */
  #checks: Promise<void> = Promise.resolve();

  constructor(open: OpenRegion, signal: AbortSignal, tell: ByteProgress) {
    this.#open = open;
    this.#signal = signal;
    this.#tell = tell;
    const memory = transferMemory(1 + transfersInFlight + 2 * batchTransfers);
    const [zeros = new Uint8Array(), ...rest] = memory;
    this.#zeros = zeros;
    this.#reads = rest.splice(0, transfersInFlight);
    this.#filling = batchOf(rest.splice(0, batchTransfers));
    this.#other = batchOf(rest);
  }

  /** One transfer of zeros, in memory that others may read. */
  get zeros(): Uint8Array {
    return this.#zeros;
  }

  /** The buffer to fill next, once it is free. Rejects with an earlier failure. */
  async free(): Promise<TransferBuffer> {
    if (this.#filling.used === batchTransfers) await this.#nextBatch();
    const buffer = this.#filling.buffers[this.#filling.used] as TransferBuffer;
    await buffer.hashed;
    return buffer;
  }

  /** Begins to write what `free` gave; resolves when there may be another write. */
  async write(offset: number, length: number): Promise<void> {
    const { buffers, used, writes, pieces } = this.#filling;
    const { bytes } = buffers[used] as TransferBuffer;
    if (this.#underWay.length === transfersInFlight) await this.#underWay.shift();
    const piece = bytes.subarray(0, length);
    const write = this.#open.write(offset, piece);
    // A later wait rejects with the error.
    markHandled(write);
    this.#filling.used += 1;
    this.#underWay.push(write);
    writes.push(write);
    pieces.push({ offset, length, bytes: piece });
    if (length === transferBytesMax) this.#probes.note(offset, bytes);
  }

  /** Zeros on the disk, as the caller assumes. */
  noteZeros(offset: number, length: number): void {
    this.#filling.pieces.push({ offset, length });
    this.#probes.noteZeros(offset, length);
  }

  /** Resolves when all was read back. Rejects with `DeviceError` or `ImageError`. */
  async finish(): Promise<void> {
    await this.#nextBatch();
    await this.#checks;
    const probes = this.#probes.all();
    await this.#compare(
      probes.map(({ offset, bytes }) => ({
        ...{ offset, length: probeBytes },
        ...(bytes === undefined ? {} : { bytes }),
      })),
      () => {},
    );
  }

  /** C4 */
  async waitUntilSettled(): Promise<void> {
    await Promise.allSettled([...this.#filling.writes, ...this.#other.writes]);
    await whenSettled(this.#checks);
  }

  /** Has the batch read back that is full, and waits until the other one was. */
  async #nextBatch(): Promise<void> {
    const full = this.#filling;
    full.checked = this.#checks.then(() => this.#check(full));
    this.#checks = full.checked;
    // A later wait rejects with the error.
    markHandled(full.checked);
    await this.#other.checked;
    this.#filling = this.#other;
    this.#other = full;
    Object.assign(this.#filling, { used: 0, writes: [], pieces: [] });
  }

  async #check({ writes, pieces }: Batch): Promise<void> {
    await Promise.all(writes);
    if (pieces.length === 0) return;
    await this.#open.flush();
    await this.#compare(pieces, this.#tell);
  }

  async #compare(pieces: Iterable<Piece>, tell: ByteProgress): Promise<void> {
    await inFlight(cut(pieces), async ({ offset, length, bytes }, slot) => {
      if (this.#signal.aborted) throw new DeviceError('cancelled before it was done');
      const found = this.#reads[slot]?.subarray(0, length) ?? new Uint8Array();
      await this.#open.readInto(offset, found);
      const wanted = bytes ?? this.#zeros.subarray(0, length);
      if (Buffer.compare(found, wanted) === 0) {
        tell(length);
        return true;
      }
      const range = `${length} bytes at ${offset}`;
      const problem = `the disk gives back something else than written: ${range}`;
      throw new ImageError('notReadBack', problem);
    });
  }
}

function batchOf(memory: readonly Uint8Array[]): Batch {
  const buffers = memory.map((bytes) => ({ bytes, hashed: Promise.resolve() }));
  return { buffers, used: 0, writes: [], pieces: [], checked: Promise.resolve() };
}

/** Runs of zeros have any length. */
function* cut(pieces: Iterable<Piece>): Generator<Piece> {
  for (const piece of pieces) {
    const { offset, length, bytes } = piece;
    if (bytes !== undefined) yield piece;
    else {
      for (let at = 0; at < length; at += transferBytesMax) {
        yield { offset: offset + at, length: Math.min(transferBytesMax, length - at) };
      }
    }
  }
}
