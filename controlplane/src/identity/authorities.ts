/**
 * The live certificate authorities of the control plane, equal on every replica: the present
 * issuer, the trusted authorities, and the certificate of our own ports.
 *
 * Invariants:
 * 1. The store's record decides. The folder's copy counts only when the store has none or an older
 *    one, and only if both belong to one control plane.
 * 2. Nothing is shown to others before it is durable in the store.
 * 3. Observers are called after our own certificate and the operators' file were updated.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { Authority_Stage as Stage, sha256Hex, store as wire } from '@rackwright/messages';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import type { KeyAndChain } from '@rackwright/rpc';
import type { StateStore, StoreRevision } from '@rackwright/store';
import { type FollowedValues, followValues, type StoreFollower } from '../following/index.ts';
import {
  changeRecord,
  isDirectlyBelow,
  orUnavailable,
  readRecord,
  writeRecord,
} from '../records/index.ts';
import { SecretError } from '../secrets/index.ts';
import { halfLifeMs, type Issuer } from './authority.ts';
import { newAuthorities, readCopy, writeAuthorities } from './authority-files.ts';
import {
  type AuthorityMaking,
  certificatesOf,
  type KeySealer,
  openAuthority,
  trustKey,
} from './authority-record.ts';
import { IdentityError, type IdentityFolder } from './owner-only.ts';
import {
  advanceReady,
  authorityAt,
  type RackTrust,
  rackTrust,
  type TrustTiming,
  trustFaults,
  waitsOf,
} from './rotation.ts';
import { freshServerCertificate, type ServerCertificate } from './server-certificate.ts';

export interface AuthoritiesOptions {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly sealer: KeySealer;
  readonly folder: IdentityFolder;
  readonly serverKeyPem: string;
  /** DNS names and IP addresses under which operators and agents reach us. */
  readonly serverNames: readonly string[];
  readonly timing: TrustTiming;
  /** The folder was made at this start: a record that does not open belongs to another identity. */
  readonly isNew: boolean;
}

/** What all replicas trust and show at one moment. */
export interface TrustNow {
  readonly record: wire.TrustRecord;
  readonly revision: StoreRevision;
  readonly issuer: Issuer;
  /** SHA-256 of the signing authority, lower-case hex. */
  readonly caSha256: string;
  /** PEM of every trusted certificate. */
  readonly certificates: readonly string[];
  readonly server: ServerCertificate;
}

/** Pause before a retry (disk full, store unavailable), milliseconds. */
const retryMs = 5_000;
/** Several racks that change together cause one check. */
const soonMs = 200;
/** The most lost compare-and-sets. */
const roundsMax = 8;

/** Opens the record, or creates it. Throws `IdentityError`. */
export async function openAuthorities(options: AuthoritiesOptions): Promise<Authorities> {
  const { record, revision } = await settleRecord(options);
  return new Authorities(options, await present(options, record, revision));
}

/** Invariant 1. */
async function settleRecord(options: AuthoritiesOptions) {
  const { store, folder } = options;
  const making = makingOf(options);
  for (let round = 0; round < roundsMax; round += 1) {
    const kept = await readRecord(store, wire.TrustRecordSchema, trustKey);
    const copy = await readCopy(folder);
    if (kept !== undefined && !(await isForeign(options, kept.record))) {
      if (copy === undefined || copy.generation <= kept.record.generation) return kept;
      refuseStranger(kept.record, copy, folder);
    }
    const record = copy ?? (options.isNew ? await newAuthorities(making) : undefined);
    if (record === undefined) throw lost(folder);
    const expected = kept?.revision ?? 'absent';
    const written = await writeRecord(options, wire.TrustRecordSchema, trustKey, record, expected);
    if (written.kind === 'ok') return { record, revision: written.revision };
  }
  throw new IdentityError('the authorities in the store change all the time: start again');
}

/** Only a new identity that a person has accepted gets here with a foreign record. */
async function isForeign(options: AuthoritiesOptions, record: wire.TrustRecord): Promise<boolean> {
  if (!options.isNew) return false;
  try {
    await open(options, record);
    return false;
  } catch (error) {
    if (error instanceof SecretError) return true;
    throw error;
  }
}

function refuseStranger(
  kept: wire.TrustRecord,
  copy: wire.TrustRecord,
  folder: IdentityFolder,
): void {
  const known = new Set(kept.authorities.map(({ authority }) => authority?.sha256));
  if (copy.authorities.some(({ authority }) => known.has(authority?.sha256))) return;
  throw new IdentityError(
    `the certificate authorities in ${folder.path}/ca.sealed are not those of the store. Either ` +
      'the folder belongs to another control plane, or the store was set back to before they ' +
      'existed. Restore both from the same backup.',
  );
}

function lost(folder: IdentityFolder): IdentityError {
  return new IdentityError(
    `neither the store nor ${folder.path}/ca.sealed has the certificate authority. Restore one ` +
      'of both from its backup: a new authority would not fit the agents that exist.',
  );
}

function makingOf(options: AuthoritiesOptions): AuthorityMaking {
  return { ...options, caLifetimeMs: options.timing.caLifetimeMs };
}

function open(
  { sealer, clock, random }: AuthoritiesOptions,
  record: wire.TrustRecord,
): Promise<Issuer> {
  const active = authorityAt(record, Stage.ACTIVE);
  if (active === undefined) throw new IdentityError('no certificate authority signs');
  return openAuthority(active, sealer, clock, random);
}

async function present(
  options: AuthoritiesOptions,
  record: wire.TrustRecord,
  revision: StoreRevision,
): Promise<TrustNow> {
  const { folder, serverKeyPem: privateKeyPem, serverNames: names, clock } = options;
  const issuer = await open(options, record);
  await writeAuthorities(folder, record);
  const making = { folder, issuer, privateKeyPem, names };
  return {
    record,
    revision,
    issuer,
    caSha256: sha256Hex(new Uint8Array(issuer.caCertificate.rawData)),
    certificates: certificatesOf(record),
    server: await freshServerCertificate(making, clock.nowMs()),
  };
}

/** The authorities, followed from `start` to `stop`. */
export class Authorities {
  readonly #options: AuthoritiesOptions;
  #followed: FollowedValues | undefined;
  readonly #observers: ((now: TrustNow) => void)[] = [];
  #now: TrustNow;
  #taking: Promise<void> = Promise.resolve();
  #racks: () => readonly RackTrust[] = () => [];
  #cancelRenewal: Cancel = () => undefined;
  #cancelRound: Cancel = () => undefined;
  #roundAtMs = Number.POSITIVE_INFINITY;
  #stopped = false;
  readonly #faults = new Set<string>();

  constructor(options: AuthoritiesOptions, now: TrustNow) {
    this.#options = options;
    this.#now = now;
  }

  get now(): TrustNow {
    return this.#now;
  }

  get timing(): TrustTiming {
    return this.#options.timing;
  }

  /** What our ports show, and the authorities for their clients' certificates. */
  get tls(): KeyAndChain & { readonly clientCaPem: string } {
    return { ...this.#now.server.tls, clientCaPem: this.#now.certificates.join('') };
  }

  /** Invariant 3; also after a renewal of our own certificate alone. */
  onChange(observer: (now: TrustNow) => void): void {
    this.#observers.push(observer);
  }

  /** Follows the store; `racks` returns this replica's knowledge of every rack's agent. */
  async start(following: StoreFollower, racks: () => readonly RackTrust[]): Promise<void> {
    this.#racks = racks;
    this.#followed = followValues(following, trustKey, (key, entry) => {
      if (key !== trustKey || entry === undefined) return;
      void this.#take(fromBinary(wire.TrustRecordSchema, entry.value), entry.revision);
    });
    await this.#followed.start();
    this.#armRenewal();
    this.#checkWithin(0);
  }

  stop(): void {
    this.#stopped = true;
    this.#followed?.stop();
    this.#cancelRenewal();
    this.#cancelRound();
  }

  /** Something that a rotation may wait for has changed. */
  checkSoon(): void {
    if (isMoving(this.#now.record)) this.#checkWithin(soonMs);
  }

  /**
   * Changes the record: `change` returns the next one, or undefined when there is nothing to do.
   * Resolves once this replica uses the resulting record.
   */
  async change(
    change: (record: wire.TrustRecord) => Promise<wire.TrustRecord | undefined>,
  ): Promise<TrustNow> {
    const texts = { name: 'the trust in certificate authorities' };
    const schema = wire.TrustRecordSchema;
    const changed = await changeRecord(this.#options, schema, trustKey, change, texts);
    if (changed === undefined) throw lost(this.#options.folder);
    await this.#take(changed.record, changed.revision);
    return this.#now;
  }

  /**
   * Those of these authorities (SHA-256, lower-case hex) that exist. The store is read only for
   * authorities that are unknown here: another replica may have just created one.
   */
  async existing(digests: readonly string[]): Promise<string[]> {
    const here = digestsOf(this.#now.record);
    if (digests.every((digest) => here.has(digest))) return [...digests];
    const kept = await readRecord(this.#options.store, wire.TrustRecordSchema, trustKey);
    const there = digestsOf(kept?.record ?? this.#now.record);
    return digests.filter((digest) => there.has(digest));
  }

  /** Every rack's trust, from the present store. */
  async readRacks(): Promise<RackTrust[]> {
    const { entries } = await orUnavailable(this.#options.store.list('racks'));
    return entries
      .filter(({ key }) => isDirectlyBelow('racks', key))
      .map(({ value }) => rackTrust(fromBinary(wire.RackRecordSchema, value)));
  }

  /** One after another, so that an older record never replaces a newer one. */
  #take(record: wire.TrustRecord, revision: StoreRevision): Promise<void> {
    this.#taking = this.#taking.then(async () => {
      if (revision <= this.#now.revision) return;
      try {
        this.#now = await present(this.#options, record, revision);
      } catch (error) {
        const { log, clock } = this.#options;
        log.error({}, 'the certificate authorities could not be followed', error);
        clock.after(retryMs, () => void (this.#stopped || this.#take(record, revision)));
        return;
      }
      const { caSha256, certificates } = this.#now;
      const fields = { signs: caSha256, trusted: certificates.length };
      this.#options.log.info(fields, 'the certificate authorities have changed');
      this.#notify();
    });
    return this.#taking;
  }

  #notify(): void {
    this.#armRenewal();
    this.checkSoon();
    for (const observer of this.#observers) observer(this.#now);
  }

  #armRenewal(): void {
    const { clock } = this.#options;
    const dueMs = halfLifeMs(this.#now.server.certificate) - clock.nowMs();
    this.#renewAfter(Math.max(0, dueMs));
  }

  #renewAfter(delayMs: number): void {
    const { clock, log } = this.#options;
    this.#cancelRenewal();
    if (this.#stopped) return;
    this.#cancelRenewal = clock.after(Math.min(delayMs, timerMsMax), () => {
      this.#taking = this.#taking.then(async () => {
        try {
          if (halfLifeMs(this.#now.server.certificate) > clock.nowMs()) return this.#armRenewal();
          const { record, revision } = this.#now;
          this.#now = await present(this.#options, record, revision);
          log.info({}, 'the server certificate was renewed');
          this.#notify();
        } catch (error) {
          log.error({}, 'the server certificate could not be renewed', error);
          this.#renewAfter(retryMs);
        }
      });
    });
  }

  #checkWithin(delayMs: number): void {
    const { clock, log, timing } = this.#options;
    const atMs = clock.nowMs() + delayMs;
    if (this.#stopped || atMs >= this.#roundAtMs) return;
    this.#cancelRound();
    this.#roundAtMs = atMs;
    this.#cancelRound = clock.after(delayMs, () => {
      this.#roundAtMs = Number.POSITIVE_INFINITY;
      this.#check()
        .catch((error: unknown) => {
          log.warn({}, 'the rotation of authorities could not be checked', error);
        })
        .finally(() => this.#checkWithin(timing.checkMs));
    });
  }

  /** Present and coming problems of the authorities, each with a remedy. */
  faults(): string[] {
    const { timing, clock } = this.#options;
    return trustFaults(this.#now.record, this.#racks(), clock.nowMs(), timing);
  }

  /** Each fault is logged when it begins. */
  #warn(): void {
    const { log } = this.#options;
    const faults = this.faults();
    for (const fault of faults) {
      // Without its numbers, which change over time.
      const kind = fault.replaceAll(/\d+/g, '');
      if (this.#faults.has(kind)) continue;
      this.#faults.add(kind);
      log.warn({}, fault);
    }
    if (faults.length === 0) this.#faults.clear();
  }

  /**
   * Advances every stage that waits for nothing; any replica may do it, and one of them succeeds.
   */
  async #check(): Promise<void> {
    const { timing, clock } = this.#options;
    this.#warn();
    if (!isMoving(this.#now.record)) return;
    // The known state may be old: the store itself is read before the decision.
    const { record } = this.#now;
    const waits = record.authorities.every((one) => {
      const stage = one.authority?.stage;
      if (stage === Stage.ACTIVE) return true;
      return waitsOf(record, one, this.#racks(), clock.nowMs(), timing).length > 0;
    });
    if (waits) return;
    const racks = await this.readRacks();
    await this.change(async (kept) => advanceReady(kept, racks, clock.nowMs(), timing));
  }
}

/**
 * setTimeout has a maximum (2^31 − 1 ms); a step of the wall clock is also noticed within this
 * time.
 */
const timerMsMax = 3_600_000;

function digestsOf({ authorities }: wire.TrustRecord): ReadonlySet<string> {
  return new Set(authorities.map(({ authority }) => authority?.sha256 ?? ''));
}

function isMoving({ authorities }: wire.TrustRecord): boolean {
  return authorities.some(({ authority }) => authority?.stage !== Stage.ACTIVE);
}
