/**
 * Removes secrets from a program's output or a receiver's answer, piece by piece.
 *
 * Invariants:
 * 1. A secret is found however the pieces are cut: a possible beginning is held back until more
 *    bytes decide.
 * 2. Held-back bytes come with `end`.
 *
 * Must not: be taken for a guarantee. It finds a secret as it was given, and in base64; a program
 * that has it can write it in other ways.
 */

/** The text in place of a secret. */
const mask = new TextEncoder().encode('[secret]');
/** Shorter ones would be found in anything. */
const secretBytesMin = 4;

/** A stream of pieces without secrets in it. */
export class Masking {
  readonly #needles: readonly Buffer[];
  readonly #longest: number;
  #pending: Buffer = Buffer.alloc(0);

  constructor(secrets: readonly string[]) {
    const forms = secrets.flatMap((secret) => [secret, Buffer.from(secret).toString('base64')]);
    this.#needles = [...new Set(forms)]
      .map((form) => Buffer.from(form))
      .filter(({ length }) => length >= secretBytesMin)
      .sort((a, b) => b.length - a.length);
    this.#longest = this.#needles[0]?.length ?? 0;
  }

  /** The bytes that may be shown now, of all that arrived and were not shown yet. */
  push(piece: Uint8Array): Uint8Array {
    if (this.#longest === 0) return piece;
    const bytes = Buffer.concat([this.#pending, piece]);
    return this.#masked(bytes, { isLast: false });
  }

  /** The rest. */
  end(): Uint8Array {
    return this.#masked(this.#pending, { isLast: true });
  }

  #masked(bytes: Buffer, { isLast }: { readonly isLast: boolean }): Uint8Array {
    const shown: Uint8Array[] = [];
    let at = 0;
    for (;;) {
      const next = this.#nextIn(bytes, at);
      if (next === undefined) break;
      shown.push(bytes.subarray(at, next.at), mask);
      at = next.at + next.length;
    }
    const until = isLast ? bytes.length : Math.max(at, bytes.length - this.#beginningAt(bytes, at));
    shown.push(bytes.subarray(at, until));
    this.#pending = Buffer.from(bytes.subarray(until));
    return new Uint8Array(Buffer.concat(shown));
  }

  /** The first secret from there on; of two that begin at one place the longer. */
  #nextIn(
    bytes: Buffer,
    from: number,
  ): { readonly at: number; readonly length: number } | undefined {
    let best: { readonly at: number; readonly length: number } | undefined;
    for (const needle of this.#needles) {
      const at = bytes.indexOf(needle, from);
      if (at !== -1 && (best === undefined || at < best.at)) best = { at, length: needle.length };
    }
    return best;
  }

  /** The number of bytes at the end that may be the beginning of a secret. */
  #beginningAt(bytes: Buffer, from: number): number {
    const most = Math.min(this.#longest - 1, bytes.length - from);
    for (let length = most; length > 0; length -= 1) {
      const end = bytes.subarray(bytes.length - length);
      const begins = this.#needles.some(
        (needle) => needle.length > length && needle.subarray(0, length).equals(end),
      );
      if (begins) return length;
    }
    return 0;
  }
}

/** The same of one text. */
export function maskText(text: string, secrets: readonly string[]): string {
  const masking = new Masking(secrets);
  const pieces = [masking.push(Buffer.from(text)), masking.end()];
  return Buffer.concat(pieces).toString('utf8');
}
