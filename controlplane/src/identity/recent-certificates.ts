/**
 * A cache of recent certificates, so that frequent calls with a registered key are cheap.
 *
 * Invariants:
 * 1. Within a small part of a certificate's life, its key gets the same certificate again, a few
 *    times, because a response may be lost. After that, the caller is told when to retry.
 */
import { type RackId, unavailable } from '@rackwright/messages';

/** The part of a certificate's life in which no new one is created. */
const spacingPart = 1 / 200;
/** How often the same certificate is returned in that time. */
const repeatsMax = 4;
/** Keys whose last certificate is cached; beyond that, the oldest is dropped. */
const keysMax = 8_192;
/** The retry delay for a key whose certificate is being created, milliseconds. */
const busyRetryMs = 1_000;

/** A recently issued certificate. */
export interface RecentCertificate<T> {
  readonly rackId: RackId;
  /** SHA-256 of the authority that signed it, lower-case hex. */
  readonly caSha256: string;
  readonly atMs: number;
  readonly lifetimeMs: number;
  readonly answer: T;
}

export class RecentCertificates<T> {
  readonly #last = new Map<string, { readonly issued: RecentCertificate<T>; repeats: number }>();
  readonly #underWay = new Set<string>();

  /** The key's last certificate by this authority, while no new one may be created. */
  last(key: string, caSha256: string, nowMs: number): RecentCertificate<T> | undefined {
    const issued = this.#last.get(key)?.issued;
    if (issued?.caSha256 !== caSha256) return undefined;
    const ageMs = nowMs - issued.atMs;
    return ageMs >= 0 && ageMs < issued.lifetimeMs * spacingPart ? issued : undefined;
  }

  /** Counts a repeated response (invariant 1). Throws when the number is used up. */
  repeat(key: string, { atMs, lifetimeMs }: RecentCertificate<T>, nowMs: number): void {
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

  /** Creates the key's certificate, one at a time. */
  async make(key: string, work: () => Promise<RecentCertificate<T>>): Promise<T> {
    if (this.#underWay.has(key)) {
      const text = 'A certificate for this key is just being made.';
      throw unavailable('CERTIFICATE_UNDER_WAY', text, busyRetryMs);
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
