/**
 * Keeps the agent's certificate fresh and its authorities as the control plane says.
 *
 * 1. An agent renews at a point between 50 and 70 % of its certificate's life. The point follows
 *    from its key: it is the same each time, and many agents are spread over the whole range.
 * 2. A change is durable before a session or an acknowledgement uses it.
 * 3. A certificate that has ended is renewed like any other: the registered key is enough.
 */
import { createHash, X509Certificate } from 'node:crypto';
import type { agent } from '@rackwright/messages';
import { type Cancel, type Clock, type Log, type Random, whenSettled } from '@rackwright/platform';
import { fullJitterDelayMs } from '@rackwright/results';
import { authoritiesMax, certificatesIn, fingerprintsOf, readBundle, signerOf } from './bundle.ts';
import { clockWarning, diagnose } from './diagnosis.ts';
import { renew, splitAddress } from './enrolment.ts';
import { type AgentIdentity, type IdentityFiles, readKey } from './identity.ts';

export interface RenewalParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly files: IdentityFiles;
}

const renewFromPart = 0.5;
const renewOverPart = 0.2;
const retryFirstMs = 5_000;
const retryMsMax = 600_000;
/** Nobody works for us any more: tried more often. */
const retryExpiredMs = 30_000;
/** Not more often than this, even when our clock says that a new certificate is old already. */
const renewalSpacingMs = 60_000;
/** The spacing and the retries of short lives, as parts of them. */
const spacingPart = 1 / 20;
const retryPart = 1 / 10;
/**
 * The minimum that is assumed for a certificate's life: a late answer may carry one that is over.
 */
const shortestLifeMs = 1_000;
/** Timers are set no further than this, so that a step of the wall clock is noticed. */
const recheckMs = 600_000;

/** Only a session removes an authority: an answer may come from a replica that knows less. */
function unite(known: string, received: string): string {
  if (known === received) return known;
  const all = [...certificatesIn(received), ...certificatesIn(known)].map(String);
  const united = [...new Set(all)];
  return united.length > authoritiesMax ? received : united.join('');
}

/** A rack's place in anything that is to be spread over all racks, 0 to 1 (1). */
export function keyCheckOf({ privateKeyPem }: Pick<AgentIdentity, 'privateKeyPem'>): number {
  const { publicKeyDer } = readKey(privateKeyPem);
  return createHash('sha256').update(publicKeyDer).digest().readUInt32BE(0) / 2 ** 32;
}

/** When to renew: wall time, milliseconds (1). */
export function renewAtMs(identity: AgentIdentity): number {
  const { issuedAtMs, expiresAtMs } = identity;
  const part = renewFromPart + renewOverPart * keyCheckOf(identity);
  return issuedAtMs + (expiresAtMs - issuedAtMs) * part;
}

/**
 * The session asks for `current()` at each dial, and moves to a new certificate when `onRenewed`
 * says that there is one.
 */
export class IdentityRenewal {
  readonly #parts: RenewalParts;
  readonly #observers: (() => void)[] = [];
  #identity: AgentIdentity;
  #attempt = 0;
  #cancel: Cancel = () => {};
  #stopped = false;
  /** Wall time at which renewal is urgent, because the signing authority has changed. */
  #urgentAtMs = Number.POSITIVE_INFINITY;
  #triedMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: RenewalParts, identity: AgentIdentity) {
    this.#parts = parts;
    this.#identity = identity;
  }

  current(): AgentIdentity {
    return this.#identity;
  }

  /** Calls `observer` when there is a new certificate. */
  onRenewed(observer: () => void): void {
    this.#observers.push(observer);
  }

  /** SHA-256 of the trusted authorities, as they are on the disk. */
  trusted(): string[] {
    return fingerprintsOf(certificatesIn(this.#identity.caCertificatePem));
  }

  start(): void {
    const { clock } = this.#parts;
    const dueMs = Math.min(renewAtMs(this.#identity), this.#urgentAtMs) - clock.nowMs();
    if (dueMs <= 0) void this.#renew();
    else this.#startAfter(Math.min(dueMs, recheckMs));
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** Trusts these authorities from now on. Rejects if they cannot be stored (2). */
  async adopt({ certificatePem, activeCaSha256, renewWithinMs }: agent.TrustBundle): Promise<void> {
    const caCertificatePem = readBundle(certificatePem, activeCaSha256);
    await this.#write((identity) => ({ ...identity, caCertificatePem }));
    const authorities = certificatesIn(caCertificatePem);
    const signer = signerOf(new X509Certificate(this.#identity.certificatePem), authorities);
    if (signer !== undefined && fingerprintsOf([signer])[0] === activeCaSha256) return;
    const inMs = keyCheckOf(this.#identity) * renewWithinMs;
    this.#urgentAtMs = Math.min(this.#urgentAtMs, this.#parts.clock.nowMs() + inMs);
    this.#parts.log.info({ inMs: Math.round(inMs) }, 'another authority signs: a new certificate');
    if (!this.#stopped) this.start();
  }

  /** A session failed: reports why, and renews where that can help. */
  async sessionFailed(): Promise<void> {
    const { clock, log } = this.#parts;
    if (clock.nowMs() - this.#triedMs < this.#spacingMs()) return;
    this.#triedMs = clock.nowMs();
    const { agentEndpoint, enrolmentAddress, caCertificatePem, certificatePem, rack } =
      this.#identity;
    const { host, port } = splitAddress(enrolmentAddress);
    const why = await diagnose({
      clock,
      host,
      port,
      caPem: caCertificatePem,
      certificatePem,
      rack,
    });
    if (why === undefined) return;
    log.error({ agentEndpoint }, `no session: ${why}`);
    await this.#renew();
  }

  #startAfter(delayMs: number): void {
    this.#cancel();
    if (!this.#stopped) this.#cancel = this.#parts.clock.after(delayMs, () => this.start());
  }

  async #renew(): Promise<void> {
    const { log, clock } = this.#parts;
    this.#cancel();
    this.#triedMs = clock.nowMs();
    try {
      const before = this.#identity;
      const next = await renew(this.#parts, readKey(before.privateKeyPem), before);
      await this.#write(({ caCertificatePem }) => ({
        ...next,
        caCertificatePem: unite(caCertificatePem, next.caCertificatePem),
      }));
      this.#attempt = 0;
      this.#urgentAtMs = Number.POSITIVE_INFINITY;
      log.info({ expiresAtMs: next.expiresAtMs }, 'certificate renewed');
      const warning = clockWarning(next.issuedAtMs, next.issuedAtMs + (next.clockOffsetMs ?? 0));
      if (warning !== undefined) log.warn({}, warning);
      this.#startAfter(this.#spacingMs());
      for (const observer of this.#observers) observer();
    } catch (cause) {
      this.#again(cause);
    }
  }

  #again(cause: unknown): void {
    const { log, random, clock } = this.#parts;
    this.#attempt += 1;
    const { expiresAtMs } = this.#identity;
    const isOver = clock.nowMs() >= expiresAtMs;
    const delayMsMax = Math.min(isOver ? retryExpiredMs : retryMsMax, this.#lifeMs() * retryPart);
    const delayMs = fullJitterDelayMs({
      attempt: this.#attempt,
      firstMs: Math.min(retryFirstMs, delayMsMax),
      delayMsMax,
      fraction: random.fraction(),
    });
    const fields = { expiresAtMs, retryInMs: Math.round(delayMs) };
    // Once it has ended the agent can do nothing: a person has to know.
    if (isOver) log.error(fields, 'the certificate has ended and is not renewed', cause);
    else log.warn(fields, 'the certificate is not renewed yet', cause);
    this.#startAfter(delayMs);
  }

  #lifeMs(): number {
    const { issuedAtMs, expiresAtMs } = this.#identity;
    return Math.max(shortestLifeMs, expiresAtMs - issuedAtMs);
  }

  #spacingMs(): number {
    return Math.min(renewalSpacingMs, Math.max(0, this.#lifeMs() * spacingPart));
  }

  /** Writes are serialized: neither a certificate nor authorities are lost to the other's write. */
  #write(change: (identity: AgentIdentity) => AgentIdentity): Promise<void> {
    const writing = this.#writing.then(async () => {
      const changed = change(this.#identity);
      if (JSON.stringify(changed) === JSON.stringify(this.#identity)) return;
      await this.#parts.files.save(changed);
      this.#identity = changed;
    });
    this.#writing = whenSettled(writing);
    return writing;
  }
}
