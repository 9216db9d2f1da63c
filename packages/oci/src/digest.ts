/** Digests (image-spec, "Digests"): content is named by its hash. Only SHA-256 is accepted. */
import { createHash } from 'node:crypto';

/** "sha256:" and 64 lower-case hex digits. */
export type Digest = string & { readonly __brand: 'Digest' };

const form = /^sha256:[0-9a-f]{64}$/;

/** Undefined for anything else, other algorithms included. */
export function parseDigest(text: string): Digest | undefined {
  return form.test(text) ? (text as Digest) : undefined;
}

/** The digest of a SHA-256 as hex, as a hash gives it. Throws a RangeError for anything else. */
export function digestOfHex(hex: string): Digest {
  const digest = parseDigest(`sha256:${hex}`);
  if (digest === undefined) throw new RangeError(`"${hex}" is no SHA-256 in lower-case hex`);
  return digest;
}

/** The 64 hex digits alone: fit for a file's name. */
export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length);
}

export function digestOf(bytes: Uint8Array): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}` as Digest;
}

/** Hashes content piece by piece. */
export class RunningDigest {
  readonly #hash = createHash('sha256');
  #bytes = 0;

  /** The number of bytes so far. */
  get bytes(): number {
    return this.#bytes;
  }

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** To be called once, at the end. */
  digest(): Digest {
    return `sha256:${this.#hash.digest('hex')}` as Digest;
  }
}
