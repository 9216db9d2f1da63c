/**
 * What enrolment remembers in memory, so that callers cost little: whoever has a registered key may
 * ask as often as it likes.
 *
 * Invariants:
 * 1. Within a small part of a certificate's life its key is answered with that same certificate, a
 *    few times, since a reply may be lost; then it is told when to come again.
 */
import { type RackId, unavailable } from '@rackwright/messages';

/** Of a certificate's life, the part in which no other one is made. */
const spacingPart = 1 / 200;
/** How often the same certificate is told in that time. */
const repeatsMax = 4;
/** Keys whose last certificate is remembered; beyond, the oldest is forgotten. */
const keysMax = 8_192;
/** When a key whose certificate is just being made should ask again, milliseconds. */
const busyRetryMs = 1_000;

/** A certificate that was issued lately. */
export interface Issued<T> {
  readonly rackId: RackId;
  /** SHA-256 of the authority that signed it, lower-case hex. */
  readonly caSha256: string;
  readonly atMs: number;
  readonly lifetimeMs: number;
  readonly answer: T;
}

export class RecentCertificates<T> {
  readonly #last = new Map<string, { readonly issued: Issued<T>; repeats: number }>();
  readonly #underWay = new Set<string>();

  /** The key's last certificate by this authority, while no other one is to be made. */
  last(key: string, caSha256: string, nowMs: number): Issued<T> | undefined {
    const issued = this.#last.get(key)?.issued;
    if (issued?.caSha256 !== caSha256) return undefined;
    const ageMs = nowMs - issued.atMs;
    return ageMs >= 0 && ageMs < issued.lifetimeMs * spacingPart ? issued : undefined;
  }

  /** It is told once more (invariant 1). Throws when that was often enough. */
  repeat(key: string, { atMs, lifetimeMs }: Issued<T>, nowMs: number): void {
    const known = this.#last.get(key);
    if (known === undefined) return;
    if (known.repeats >= repeatsMax) {
      throw unavailable(
        'CERTIFICATE_JUST_ISSUED',
        'This key has just got its certificate, and was told it again several times.',
        Math.ceil(atMs + lifetimeMs * spacingPart - nowMs),
      );
    }
    known.repeats += 1;
  }

  /** Makes the key's certificate, one at a time. */
  async make(key: string, work: () => Promise<Issued<T>>): Promise<T> {
    if (this.#underWay.has(key)) {
      const words = 'A certificate for this key is just being made.';
      throw unavailable('CERTIFICATE_UNDER_WAY', words, busyRetryMs);
    }
    this.#underWay.add(key);
    try {
      const issued = await work();
      this.#last.delete(key);
      this.#last.set(key, { issued, repeats: 0 });
      const [oldest] = this.#last.keys();
      if (this.#last.size > keysMax && oldest !== undefined) this.#last.delete(oldest);
      return issued.answer;
    } finally {
      this.#underWay.delete(key);
    }
  }
}
