/**
 * Questions that were decoded before: firmware sends the same bytes at each boot, except the number
 * of the transaction and the seconds since it began.
 *
 * M1 A question is known only when every other byte is the same. The kept result was read from
 *    those bytes alone.
 * M2 Bounded in entries and in bytes each; the oldest entry is forgotten first, and decoded again.
 */

/** Firmware's questions have 300 to 600 bytes. */
const questionBytesMax = 1_024;

/** Offset and length of the transaction id and the seconds (RFC 951): 32 and 16 bits. */
const varying = { from: 4, to: 10 } as const;

interface Entry<Kept> {
  readonly question: Uint8Array;
  readonly kept: Kept;
}

/** Remembers the result of decoding a question. */
export class QuestionMemory<Kept> {
  readonly #entriesMax: number;
  readonly #entries = new Map<number, Entry<Kept>>();

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  /** The kept result for this question; undefined when it is not known. */
  find(datagram: Uint8Array): Kept | undefined {
    if (this.#entries.size === 0) return undefined;
    const entry = this.#entries.get(digest(datagram));
    return entry !== undefined && isSame(entry.question, datagram) ? entry.kept : undefined;
  }

  /** Copies the datagram. One that is longer than firmware's is not kept. */
  keep(datagram: Uint8Array, kept: Kept): void {
    if (datagram.length > questionBytesMax) return;
    const key = digest(datagram);
    this.#entries.delete(key);
    this.#entries.set(key, { question: datagram.slice(), kept });
    if (this.#entries.size <= this.#entriesMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}

/** The number that ties a question to its answer: 0 when the datagram has none. */
export function transactionIdOf(datagram: Uint8Array): number {
  let id = 0;
  for (let at = 4; at < 8; at += 1) id = id * 256 + (datagram[at] ?? 0);
  return id;
}

/** FNV-1a, 32 bits. Questions of one digest take each other's place, and nothing else (M1). */
function digest(datagram: Uint8Array): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < datagram.length; at += 1) {
    if (at === varying.from) at = varying.to;
    hash = Math.imul(hash ^ (datagram[at] ?? 0), 0x0100_0193);
  }
  return hash;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += 1) {
    if (at === varying.from) at = varying.to;
    if (one[at] !== other[at]) return false;
  }
  return true;
}
