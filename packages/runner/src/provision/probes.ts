/**
 * Blocks that are read once more when all of an image is written.
 *
 * A block that was read back soon after its write can be lost by a later write: a disk that reports
 * more than its real size writes its end over its beginning. So one block each of up to `probesMax`
 * transfers, spread evenly over the written content, is kept in memory and compared at the end. A
 * lost run that is longer than a mebibyte and 1/256 of the content holds one of them.
 */
import { transferBytesMax } from '../machine/block-devices.ts';

/** A block, and its right content; undefined: zeros. */
export interface Probe {
  readonly offset: number;
  readonly bytes: Uint8Array | undefined;
}

/** The size of a probe; no disk has larger logical blocks. */
export const probeBytes = 4096;
/** Together two mebibytes; ten seconds of a slow disk's seeks. */
const probesMax = 512;
const blocksInTransfer = transferBytesMax / probeBytes;
/** Coprime to the blocks of a transfer, so that no block is favoured. */
const blockStep = 157;

export class Probes {
  /** By the number of the transfer. */
  readonly #kept = new Map<number, Probe>();
  /** One of so many transfers has a probe. */
  #stride = 1;

  /** Notes a whole transfer at `offset`, a multiple of its size; its bytes are copied. */
  note(offset: number, bytes: Uint8Array): void {
    const number = offset / transferBytesMax;
    if (number % this.#stride === 0) this.#keep(number, bytes);
  }

  /** Notes whole transfers of zeros. */
  noteZeros(offset: number, length: number): void {
    const end = (offset + length) / transferBytesMax;
    for (let number = this.#nextFrom(offset / transferBytesMax); number < end; ) {
      this.#keep(number, undefined);
      number = this.#nextFrom(number + 1);
    }
  }

  /** In the order of their offsets. */
  all(): readonly Probe[] {
    return [...this.#kept.values()].toSorted((one, other) => one.offset - other.offset);
  }

  #nextFrom(number: number): number {
    return Math.ceil(number / this.#stride) * this.#stride;
  }

  #keep(number: number, bytes: Uint8Array | undefined): void {
    const within = ((number * blockStep) % blocksInTransfer) * probeBytes;
    const offset = number * transferBytesMax + within;
    this.#kept.set(number, { offset, bytes: bytes?.slice(within, within + probeBytes) });
    if (this.#kept.size <= probesMax) return;
    this.#stride *= 2;
    for (const each of this.#kept.keys()) {
      if (each % this.#stride !== 0) this.#kept.delete(each);
    }
  }
}
