/** Renews the agent's certificate at half of its life. */
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import { fullJitterDelayMs } from '@rackwright/results';
import { renew } from './enrolment.ts';
import { type AgentIdentity, type IdentityFiles, readKey } from './identity.ts';

export interface RenewalParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly files: IdentityFiles;
}

const retryFirstMs = 5_000;
const retryLongestMs = 600_000;
/** Not more often than this, even when our clock says that a new certificate is old already. */
const renewalSpacingMs = 60_000;
/** Timers are set no further than this, so that a step of the wall clock is noticed. */
const lookAgainMs = 600_000;

/** When half of the certificate's life is over: wall time, milliseconds. */
export function renewAtMs({ issuedAtMs, expiresAtMs }: AgentIdentity): number {
  return issuedAtMs + (expiresAtMs - issuedAtMs) / 2;
}

/**
 * Keeps the identity fresh: renews at half life, again and again until it works. The session asks
 * for `current()` at each dial, so that a new certificate is used from the next connection on.
 */
export class IdentityRenewal {
  readonly #parts: RenewalParts;
  #identity: AgentIdentity;
  #attempt = 0;
  #cancel: Cancel = () => {};
  #stopped = false;

  constructor(parts: RenewalParts, identity: AgentIdentity) {
    this.#parts = parts;
    this.#identity = identity;
  }

  current(): AgentIdentity {
    return this.#identity;
  }

  start(): void {
    const untilMs = renewAtMs(this.#identity) - this.#parts.clock.nowMs();
    if (untilMs <= 0) void this.#renew();
    else this.#startAfter(Math.min(untilMs, lookAgainMs));
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #startAfter(delayMs: number): void {
    this.#cancel = this.#parts.clock.after(delayMs, () => this.start());
  }

  async #renew(): Promise<void> {
    const { log, files, random } = this.#parts;
    try {
      const key = readKey(this.#identity.privateKeyPem);
      const next = await renew(this.#parts, key, this.#identity);
      await files.save(next);
      this.#identity = next;
      this.#attempt = 0;
      log.info({ expiresAtMs: next.expiresAtMs }, 'certificate renewed');
      if (!this.#stopped) this.#startAfter(renewalSpacingMs);
    } catch (cause) {
      this.#attempt += 1;
      const delayMs = fullJitterDelayMs({
        attempt: this.#attempt,
        firstMs: retryFirstMs,
        longestMs: retryLongestMs,
        fraction: random.fraction(),
      });
      const words = cause instanceof Error ? cause.message : String(cause);
      log.warn({ cause: words, retryInMs: Math.round(delayMs) }, 'certificate not renewed');
      if (!this.#stopped) this.#startAfter(delayMs);
    }
  }
}
