/**
 * Writes content onto a disk, from front to back, and reads it back.
 *
 * W1 The first `headBytes` are kept in memory and not written: who has them decides when the disk
 *    counts.
 * W2 While one transfer is written and hashed the next ones are filled, in a ring of few: all the
 *    memory that a disk of any size needs.
 * W3 Zeros are written like everything else, unless the disk has zeroed a long run by itself: the
 *    reading after tells whether that was true.
 * W4 However long a run of zeros is, all else has its turn meanwhile, and it can be cancelled.
 * W5 A disk that is pulled or replaced is written no further than the next look at it, and never
 *    counts: it is looked at on the way, and before and after what makes it count.
 */
import { createHash } from 'node:crypto';
import { type Content, ImageError } from '@rackwright/disk-image';
import type { Hashes, RunningHash } from '@rackwright/platform';
import { DeviceError, type OpenRegion, transferBytesMax } from '../block-devices.ts';
import { transferMemory } from '../transfer-memory.ts';

/** The disk that is written, and held by nobody else. */
export interface ImageDisk {
  readonly open: OpenRegion;
  /** Rejects with `DeviceError` when what is open is not attached any more. Absent: not known. */
  present?(): Promise<void>;
  readonly sizeBytes: number;
  readonly blockBytes: number;
}

export interface Written {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** What is written last. */
export const headBytes = transferBytesMax;
/** From so long a run on the device is asked to make the zeros itself. */
const zeroOutBytesMin = 16 * 1024 * 1024;
/** What it makes at once, bytes: it cannot be stopped meanwhile. */
const zeroOutBytesMax = 256 * 1024 * 1024;

/** After so many bytes at most the kernel is asked whether the disk is still the one held. */
const lookEveryBytes = 64 * 1024 * 1024;

/** Told how many bytes are done. */
export type ByteProgress = (bytes: number) => void;

/** One is filled, one is written, one is hashed; and one more evens out who is slower. */
const ringLength = 4;

/** One place of the ring. */
interface Transfer {
  readonly bytes: Uint8Array;
  /** It has been hashed, and its memory can be filled again as far as the hash goes. */
  hashed: Promise<unknown>;
}

export class DiskWriter {
  /** The first bytes of the content, as far as they have come. */
  readonly head = new Uint8Array(headBytes);
  readonly #disk: ImageDisk;
  readonly #signal: AbortSignal;
  readonly #hash: RunningHash;
  readonly #ring: readonly Transfer[];
  readonly #zeros: Uint8Array;
  /** Which transfer of the content is being filled, from 0 on. */
  #turn = 0;
  #pending: Promise<void> = Promise.resolve();
  /** Bytes since the disk was last looked at; looked at before the first. */
  #unseenBytes = lookEveryBytes;
  /** Bytes that have come. */
  #at = 0;
  /** A run of zeros before the transfer that is being filled. */
  #zeroBytes = 0;
  #zerosHashed: Promise<unknown> = Promise.resolve();

  /** `sizeBytes` of the content, as far as it is known. */
  constructor(disk: ImageDisk, sizeBytes: number | undefined, hashes: Hashes, signal: AbortSignal) {
    this.#disk = disk;
    this.#signal = signal;
    this.#hash = hashes.start(sizeBytes ?? disk.sizeBytes);
    const [zeros = new Uint8Array(), ...ring] = transferMemory(1 + ringLength);
    this.#zeros = zeros;
    this.#ring = ring.map((bytes) => ({ bytes, hashed: Promise.resolve() }));
  }

  get sizeBytes(): number {
    return this.#at;
  }

  /** Until then nothing is written. */
  get headIsFull(): boolean {
    return this.#at >= headBytes;
  }

  /**
   * Takes what fits into the head alone, and answers the rest, so that the head can be judged
   * before anything is written.
   */
  fillHead(content: Content): Content | undefined {
    const length = lengthOf(content);
    const taken = Math.min(length, headBytes - this.#at);
    this.#account(taken);
    if (content.kind === 'bytes') this.head.set(content.bytes.subarray(0, taken), this.#at);
    this.#at += taken;
    if (this.headIsFull) void this.#hash.update(this.head);
    if (taken === length) return undefined;
    return content.kind === 'bytes'
      ? { kind: 'bytes', bytes: content.bytes.subarray(taken) }
      : { kind: 'zeros', length: length - taken };
  }

  /** Behind the head. Rejects with `DeviceError` or `ImageError`. */
  async add(content: Content): Promise<void> {
    const length = lengthOf(content);
    this.#account(length);
    for (let done = 0; done < length; ) {
      const filled = this.#at % transferBytesMax;
      const part = Math.min(length - done, transferBytesMax - filled);
      const isZero = part === transferBytesMax && content.kind === 'zeros';
      if (!isZero) {
        const { bytes } = await this.#free();
        if (content.kind === 'zeros') bytes.fill(0, filled, filled + part);
        else bytes.set(content.bytes.subarray(done, done + part), filled);
      }
      this.#at += part;
      done += part;
      if (filled + part < transferBytesMax) continue;
      const holdsZeros = isZero || Buffer.compare(this.#transfer.bytes, this.#zeros) === 0;
      if (holdsZeros) await this.#passZeros();
      else await this.#emit(transferBytesMax, transferBytesMax);
    }
  }

  /** All is on the device when it resolves. */
  async finish(): Promise<Written> {
    const filled = this.headIsFull ? this.#at % transferBytesMax : 0;
    if (filled > 0) {
      const length = Math.ceil(filled / this.#disk.blockBytes) * this.#disk.blockBytes;
      this.#transfer.bytes.fill(0, filled, length);
      await this.#emit(length, filled);
    } else if (!this.headIsFull) void this.#hash.update(this.head.subarray(0, this.#at));
    await this.#flushZeros(this.#at - filled);
    await this.#pending;
    await this.#disk.open.flush();
    return { sizeBytes: this.#at, sha256: await this.#hash.digest() };
  }

  /** Resolves when nothing is under way any more, however it ended. */
  async settled(): Promise<void> {
    await this.#pending.catch(() => {});
    this.#hash.close();
  }

  #account(length: number): void {
    this.#throwIfStopped();
    if (this.#at + length > this.#disk.sizeBytes) {
      const sizes = `at least ${this.#at + length} bytes, the disk ${this.#disk.sizeBytes}`;
      throw new ImageError('tooLarge', `the image is larger than the disk: it has ${sizes}`);
    }
  }

  get #transfer(): Transfer {
    return this.#ring[this.#turn % ringLength] as Transfer;
  }

  /** The transfer that is being filled, when its memory is free: it was written long before. */
  async #free(): Promise<Transfer> {
    await this.#transfer.hashed;
    return this.#transfer;
  }

  /** Waits for those before, so that no more is asked of the hash than it does (W4). */
  async #passZeros(): Promise<void> {
    await this.#zerosHashed;
    this.#throwIfStopped();
    this.#zerosHashed = this.#hash.update(this.#zeros);
    this.#zeroBytes += transferBytesMax;
  }

  /** Sends the transfer on its way: what is written, and how much of it is content. */
  async #emit(length: number, contentBytes: number): Promise<void> {
    const offset = this.#at - contentBytes;
    const transfer = this.#transfer;
    transfer.hashed = this.#hash.update(transfer.bytes.subarray(0, contentBytes));
    await this.#flushZeros(offset);
    await this.#pending;
    this.#turn += 1;
    await this.#look(length);
    this.#pending = this.#disk.open.write(offset, transfer.bytes.subarray(0, length));
    // Whoever waits for it next gets the error.
    this.#pending.catch(() => {});
  }

  /** The run of zeros that ends at `end`. */
  async #flushZeros(end: number): Promise<void> {
    const length = this.#zeroBytes;
    this.#zeroBytes = 0;
    if (length === 0) return;
    await this.#pending;
    const { open } = this.#disk;
    let at = end - length;
    let isAsked = length >= zeroOutBytesMin;
    while (at < end) {
      this.#throwIfStopped();
      await this.#look(Math.min(zeroOutBytesMax, end - at));
      const much = Math.min(zeroOutBytesMax, end - at);
      isAsked &&= await hasZeroed(open, at, much);
      const done = isAsked ? much : Math.min(transferBytesMax, end - at);
      if (!isAsked) await open.writeZeros(at, done);
      at += done;
    }
  }

  /** W5 */
  async #look(bytes: number): Promise<void> {
    this.#unseenBytes += bytes;
    if (this.#unseenBytes < lookEveryBytes) return;
    this.#unseenBytes = 0;
    await this.#disk.present?.();
  }

  #throwIfStopped(): void {
    if (this.#signal.aborted) throw new DeviceError('cancelled before it was done');
  }
}

/** Whether the device says that it has made the zeros itself; the reading back tells if it has. */
async function hasZeroed(open: OpenRegion, offset: number, length: number): Promise<boolean> {
  try {
    await open.zeroOut?.(offset, length);
    return open.zeroOut !== undefined;
  } catch (error) {
    if (error instanceof DeviceError) return false;
    throw error;
  }
}

/** Reads what was written behind the head, and answers the SHA-256 of the head and that. */
export async function hashWritten(
  disk: ImageDisk,
  head: Uint8Array,
  sizeBytes: number,
  progress: ByteProgress,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256').update(head.subarray(0, Math.min(sizeBytes, head.length)));
  const kept = new Uint8Array(transferBytesMax);
  const readAt = (at: number): Promise<Uint8Array> => {
    const left = Math.min(transferBytesMax, sizeBytes - at);
    return disk.open.read(at, Math.ceil(left / disk.blockBytes) * disk.blockBytes);
  };
  if (sizeBytes <= headBytes) return hash.digest('hex');
  let coming = readAt(headBytes);
  try {
    for (let at = headBytes; at < sizeBytes; at += transferBytesMax) {
      if (signal.aborted) throw new DeviceError('cancelled before it was done');
      const length = Math.min(transferBytesMax, sizeBytes - at);
      kept.set((await coming).subarray(0, length));
      if (at + transferBytesMax < sizeBytes) coming = readAt(at + transferBytesMax);
      hash.update(kept.subarray(0, length));
      progress(at + length);
    }
  } finally {
    await coming.catch(() => {});
  }
  return hash.digest('hex');
}

/** Writes bytes in whole blocks, and reads them back. Rejects when they differ. */
export async function writeAndCompare(
  disk: ImageDisk,
  offset: number,
  bytes: Uint8Array,
): Promise<void> {
  const { open } = disk;
  await disk.present?.();
  for (let at = 0; at < bytes.length; at += transferBytesMax) {
    await open.write(offset + at, bytes.subarray(at, at + transferBytesMax));
  }
  await open.flush();
  for (let at = 0; at < bytes.length; at += transferBytesMax) {
    const wanted = bytes.subarray(at, at + transferBytesMax);
    const found = await open.read(offset + at, wanted.length);
    if (Buffer.compare(found, wanted) === 0) continue;
    const place = `${wanted.length} bytes at ${offset + at}`;
    throw new ImageError('notReadBack', `the disk gives back something else: ${place}`);
  }
  await disk.present?.();
}

function lengthOf(content: Content): number {
  return content.kind === 'bytes' ? content.bytes.length : content.length;
}
