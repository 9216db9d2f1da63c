/**
 * Writes content onto a disk, from front to back, and has it read back (`checked-writes.ts`).
 *
 * W1 Content of the first and the last `headBytes` of the disk is kept in memory and not written:
 *    the tables are there, and the code that writes them decides when the disk counts.
 * W2 While transfers are written, hashed and read back the next ones are filled.
 * W3 Zeros are written like everything else, unless the disk has zeroed a long run by itself: the
 *    reading back shows whether that was true.
 * W4 During a long run of zeros other work runs, and the run can be cancelled.
 * W5 A disk that is pulled or replaced gets no write after the next check of it, and never counts.
 *    It is checked on the way, and before and after the writes that make it count.
 */
import { copyInto } from '@rackwright/bytes';
import { type Content, ImageError } from '@rackwright/disk-image';
import type { Hashes, RunningHash } from '@rackwright/platform';
import { DeviceError, type OpenRegion, transferBytesMax } from '../machine/block-devices.ts';
import { type ByteProgress, CheckedWrites, type TransferBuffer } from './checked-writes.ts';

/** The disk that is written, held exclusively. */
export interface ImageDisk {
  readonly open: OpenRegion;
  /**
   * Rejects with `DeviceError` when the open device is not attached any more. Absent: not known.
   */
  present?(): Promise<void>;
  readonly sizeBytes: number;
  readonly blockBytes: number;
}

export interface WrittenContent {
  readonly sizeBytes: number;
  readonly sha256: string;
  /** The content in the end of the disk, which is not written yet (W1). */
  readonly tail: readonly { readonly offset: number; readonly bytes: Uint8Array }[];
}

/** The size of the part at either end of a disk that is written last. */
export const headBytes = transferBytesMax;
/** From so long a run on the device is asked to make the zeros itself. */
const zeroOutBytesMin = 16 * 1024 * 1024;
/** Bytes that the device zeroes in one call: it cannot be stopped meanwhile. */
const zeroOutBytesMax = 256 * 1024 * 1024;

/** After so many bytes at most the kernel is asked whether the disk is still the one held. */
const attachedCheckBytes = 64 * 1024 * 1024;

export class DiskWriter {
  /** The first bytes of the content so far. */
  readonly head = new Uint8Array(headBytes);
  readonly #disk: ImageDisk;
  readonly #signal: AbortSignal;
  readonly #hash: RunningHash;
  readonly #writes: CheckedWrites;
  /** The buffer that is being filled. */
  #buffer: TransferBuffer | undefined;
  /** Bytes since the disk was last looked at; looked at before the first. */
  #uncheckedBytes = attachedCheckBytes;
  /** The number of bytes so far. */
  #at = 0;
  /** A run of zeros before the transfer that is being filled. */
  #zeroBytes = 0;
  #zerosHashed: Promise<unknown> = Promise.resolve();
  readonly #tail: { readonly offset: number; readonly bytes: Uint8Array }[] = [];

  /**
   * `sizeBytes` of the content, as far as it is known; `tell` gets the bytes that were read back.
   */
  constructor(
    disk: ImageDisk,
    sizeBytes: number | undefined,
    hashes: Hashes,
    signal: AbortSignal,
    tell: ByteProgress,
  ) {
    this.#disk = disk;
    this.#signal = signal;
    this.#hash = hashes.start(sizeBytes ?? disk.sizeBytes);
    this.#writes = new CheckedWrites(disk.open, signal, tell);
  }

  get sizeBytes(): number {
    return this.#at;
  }

  /** Until then nothing is written. */
  get headIsFull(): boolean {
    return this.#at >= headBytes;
  }

  /**
   * Takes the part that fits into the head alone, and returns the rest, so that the head can be
   * judged before anything is written.
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

  /** Adds content behind the head. Rejects with `DeviceError` or `ImageError`. */
  async add(content: Content): Promise<void> {
    const length = lengthOf(content);
    this.#account(length);
    for (let done = 0; done < length; ) {
      const filled = this.#at % transferBytesMax;
      const part = Math.min(length - done, transferBytesMax - filled);
      const isZero = part === transferBytesMax && content.kind === 'zeros';
      if (!isZero) {
        this.#buffer ??= await this.#writes.free();
        const { bytes } = this.#buffer;
        if (content.kind === 'zeros') bytes.fill(0, filled, filled + part);
        else copyInto(bytes, filled, content.bytes.subarray(done, done + part));
      }
      this.#at += part;
      done += part;
      if (filled + part < transferBytesMax) continue;
      const buffer = isZero ? undefined : this.#buffer;
      if (buffer === undefined || Buffer.compare(buffer.bytes, this.#writes.zeros) === 0) {
        await this.#passZeros();
      } else await this.#emit(buffer, transferBytesMax, transferBytesMax);
    }
  }

  /** All is on the device, and was read back, when it resolves. */
  async finish(): Promise<WrittenContent> {
    const filled = this.headIsFull ? this.#at % transferBytesMax : 0;
    if (filled > 0 && this.#buffer !== undefined) {
      const length = Math.ceil(filled / this.#disk.blockBytes) * this.#disk.blockBytes;
      this.#buffer.bytes.fill(0, filled, length);
      await this.#emit(this.#buffer, length, filled);
    } else if (!this.headIsFull) void this.#hash.update(this.head.subarray(0, this.#at));
    await this.#flushZeros(this.#at - filled);
    await this.#writes.finish();
    const sha256 = await this.#hash.digest();
    return { sizeBytes: this.#at, sha256, tail: this.#tail };
  }

  /** Resolves when nothing is under way any more, however it ended. */
  async waitUntilSettled(): Promise<void> {
    await this.#writes.waitUntilSettled();
    this.#hash.close();
  }

  #account(length: number): void {
    this.#throwIfStopped();
    if (this.#at + length > this.#disk.sizeBytes) {
      const sizes = `at least ${this.#at + length} bytes, the disk ${this.#disk.sizeBytes}`;
      throw new ImageError('tooLarge', `the image is larger than the disk: it has ${sizes}`);
    }
  }

  /** Waits for the earlier ones, so that the hash's queue does not grow (W4). */
  async #passZeros(): Promise<void> {
    await this.#zerosHashed;
    this.#throwIfStopped();
    this.#zerosHashed = this.#hash.update(this.#writes.zeros);
    this.#zeroBytes += transferBytesMax;
  }

  /** Starts the transfer's write; `contentBytes` of it are content. */
  async #emit(buffer: TransferBuffer, length: number, contentBytes: number): Promise<void> {
    const offset = this.#at - contentBytes;
    buffer.hashed = this.#hash.update(buffer.bytes.subarray(0, contentBytes));
    await this.#flushZeros(offset);
    await this.#checkAttached(length);
    this.#buffer = undefined;
    const before = this.#withhold(offset, buffer.bytes.subarray(0, length));
    // A transfer that is not written leaves its memory to the next one.
    if (before > 0) await this.#writes.write(offset, before);
  }

  /** Keeps the part in the end of the disk (W1); returns the number of bytes before that. */
  #withhold(offset: number, bytes: Uint8Array): number {
    const before = Math.min(bytes.length, Math.max(0, this.#disk.sizeBytes - headBytes - offset));
    if (before < bytes.length) {
      this.#tail.push({ offset: offset + before, bytes: bytes.slice(before) });
    }
    return before;
  }

  /** The run of zeros that ends at `end`. */
  async #flushZeros(end: number): Promise<void> {
    const length = this.#zeroBytes;
    this.#zeroBytes = 0;
    if (length === 0) return;
    const { open } = this.#disk;
    let at = end - length;
    let isAsked = length >= zeroOutBytesMin;
    while (at < end) {
      this.#throwIfStopped();
      await this.#checkAttached(Math.min(zeroOutBytesMax, end - at));
      const much = Math.min(zeroOutBytesMax, end - at);
      isAsked &&= await hasZeroed(open, at, much);
      const done = isAsked ? much : Math.min(transferBytesMax, end - at);
      if (!isAsked) await open.writeZeros(at, done);
      at += done;
    }
    this.#writes.noteZeros(end - length, length);
  }

  /** W5 */
  async #checkAttached(bytes: number): Promise<void> {
    this.#uncheckedBytes += bytes;
    if (this.#uncheckedBytes < attachedCheckBytes) return;
    this.#uncheckedBytes = 0;
    await this.#disk.present?.();
  }

  #throwIfStopped(): void {
    if (this.#signal.aborted) throw new DeviceError('cancelled before it was done');
  }
}

/** Whether the device reports that it has made the zeros itself; the reading back checks that. */
async function hasZeroed(open: OpenRegion, offset: number, length: number): Promise<boolean> {
  try {
    await open.zeroOut?.(offset, length);
    return open.zeroOut !== undefined;
  } catch (error) {
    if (error instanceof DeviceError) return false;
    throw error;
  }
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
    const range = `${wanted.length} bytes at ${offset + at}`;
    throw new ImageError('notReadBack', `the disk gives back something else: ${range}`);
  }
  await disk.present?.();
}

function lengthOf(content: Content): number {
  return content.kind === 'bytes' ? content.bytes.length : content.length;
}
