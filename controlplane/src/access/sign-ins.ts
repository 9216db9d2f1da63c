/**
 * People who have signed in by a browser: a cookie that names a sign-in in the store.
 *
 * Invariants:
 * 1. A sign-in never permits more than the credential that opened it. A sign-in of a token looks
 *    that token up with every call, and ends with it. A sign-in of the identity provider has an
 *    expiry of its own, and is valid only under the configuration that gave its role.
 * 2. A cookie counts only together with the origin of this server (`checkOrigin`): a page of
 *    another site cannot make the browser carry out a call.
 * 3. Sign-ins are bounded, in total and for each caller: the oldest is removed first.
 * 4. Only its browser knows the name of a sign-in. The store has a hash of the name, and of a token
 *    the hash of its secret.
 * 5. Each call reads the record of its sign-in from the store. After a sign-out at another replica
 *    the next call is refused here, and open streams end.
 *
 * Must not: write anything when a sign-in is used.
 */
import { createHash } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type Actor,
  type ApiFailure,
  type CallContext,
  permissionDenied,
  unauthenticated,
} from '@rackwright/messages';
import {
  Bucket,
  type BucketRate,
  type Cancel,
  type Clock,
  type Log,
  type Random,
} from '@rackwright/platform';
import { type Entry, type StateStore, type StoreRevision, storeKey } from '@rackwright/store';
import { type FollowedValues, followValues, type StoreFollower } from '../following/index.ts';
import {
  deleteRecord,
  idOfKey,
  type KeptRecord,
  orUnavailable,
  readRecord,
  writeRecord,
} from '../records/index.ts';
import { Ends } from './ends.ts';
import type { Principal } from './principal.ts';
import { signInBusy } from './refusals.ts';
import { repeatEvery } from './repeated.ts';
import {
  callerOf,
  createMsOf,
  expireMsOf,
  granted,
  type SignInRecord,
  signInSchema as schema,
  signInRecord,
} from './sign-in-record.ts';

/** Its prefix binds a cookie to this host, all paths and TLS (RFC 6265bis §4.1.3.2). */
export const signInCookie = '__Host-rackwright-session';

const collection = 'browserSessions';
const signInsMax = 1_000;
const signInsPerCallerMax = 20;
const nameBytes = 32;
const nameShape = /^[A-Za-z0-9_-]{43}$/;
/** The record of an expired sign-in stays at most this long, while the store responds. */
const sweepIntervalMs = 600_000;
/** Calls that name an unknown sign-in; more are refused without a read of the store. */
const unknownRate: BucketRate = { perSecond: 50, most: 50 };

/** What has opened a sign-in. */
export interface Opener {
  /** A sign-in of a token ends with it; a sign-in of the provider outlives the provider's token. */
  readonly kind: 'token' | 'provider';
  readonly principal: Principal;
}

export interface SignInsOptions {
  readonly store: StateStore;
  readonly following: StoreFollower;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The longest sign-in, from its start. */
  readonly lifeMs: number;
  /** SHA-256, hex, of the configuration that gives the provider's users their roles. */
  readonly configSha256: string;
  /** The holder of the token with this name and secret; throws why the token is refused. */
  readonly principalOfSecret: (name: string, secretSha256: Uint8Array) => Promise<Principal>;
}

/** A sign-in that has just been opened. */
export interface OpenedSignIn {
  /** The value of `signInCookie` for the browser. */
  readonly name: string;
  /** Wall time, milliseconds. */
  readonly expireMs: number;
}

interface KnownSignIn {
  readonly revision: StoreRevision;
  readonly caller: string;
  readonly createMs: number;
  readonly expireMs: number;
}

/** See the header. */
export class SignIns {
  readonly #options: SignInsOptions;
  /** The sign-ins in the store, kept current by a watch, by the hash of the name. */
  readonly #known = new Map<string, KnownSignIn>();
  /** Callbacks for the end of a sign-in, by the hash of its name. */
  readonly #ends = new Ends();
  readonly #followed: FollowedValues;
  readonly #unknown: Bucket;
  #cancelSweep: Cancel = () => undefined;

  constructor(options: SignInsOptions) {
    this.#options = options;
    this.#unknown = new Bucket(unknownRate, options.clock.nowMs());
    this.#followed = followValues(options.following, collection, (key, entry) =>
      this.#note(idOfKey(key), entry),
    );
  }

  /** Resolves once every sign-in is known: from then on no valid sign-in is taken for a guess. */
  async start(): Promise<void> {
    await this.#followed.start();
    this.#cancelSweep = repeatEvery(this.#options.clock, sweepIntervalMs, () => this.sweep());
  }

  stop(): void {
    this.#followed.stop();
    this.#cancelSweep();
  }

  /** Opens a sign-in. Bounded by invariant 3. Throws `unavailable`. */
  async open({ kind, principal }: Opener): Promise<OpenedSignIn> {
    const { clock, random, store, lifeMs, configSha256 } = this.#options;
    const createMs = clock.nowMs();
    const ownEndMs = kind === 'token' ? (principal.expireMs ?? Infinity) : Infinity;
    const expireMs = Math.min(createMs + lifeMs, ownEndMs);
    const name = Buffer.from(random.bytes(nameBytes)).toString('base64url');
    const hash = hashOf(name);
    const { incarnation } = store;
    const record = signInRecord({ principal, createMs, expireMs, incarnation, configSha256 });
    const written = await writeRecord(this.#options, schema, keyOf(hash), record, 'absent');
    // The name has 256 random bits: a conflict means that another party drew the same ones.
    if (written.kind === 'conflict') throw signInOver();
    this.#learn(hash, record, written.revision);
    await this.sweep();
    return { name, expireMs };
  }

  /**
   * The owner of the sign-in that a call names; undefined: its cookies name no sign-in. Throws why
   * the sign-in is invalid.
   */
  async principalOf(context: CallContext): Promise<Principal | undefined> {
    const name = cookieOf(context, signInCookie);
    if (name === undefined) return undefined;
    checkOrigin(context);
    if (!nameShape.test(name)) throw signInOver();
    const hash = hashOf(name);
    const kept = await this.#read(hash);
    if (kept === undefined || this.#isOver(kept.record)) throw signInOver();
    const principal = await this.#principalIn(kept.record);
    return { ...principal, expireMs: expireMsOf(kept.record), signInHash: hash };
  }

  /** Ends the sign-in that a call names. False: there was none. Throws `unavailable`. */
  async close(context: CallContext): Promise<boolean> {
    const name = cookieOf(context, signInCookie);
    if (name === undefined || !nameShape.test(name)) return false;
    const hash = hashOf(name);
    const kept = await this.#read(hash);
    if (kept === undefined) return false;
    // A record is written once: on a conflict, another caller has deleted it.
    await deleteRecord(this.#options, keyOf(hash), kept.revision);
    this.#forget(hash);
    return true;
  }

  /**
   * Calls `end` when the sign-in of this hash is signed out or removed for a newer one, until the
   * returned function is called. Expiry is not reported here: the sign-in expires with its
   * principal.
   */
  onEnd(hash: string, end: () => void): () => void {
    const cancel = this.#ends.add(hash, end);
    // It may have ended between the check of the call and this line; or the watch lags.
    if (!this.#known.has(hash)) void this.#reread(hash);
    return cancel;
  }

  /** Removes expired sign-ins and those beyond the bounds (invariant 3). */
  async sweep(): Promise<void> {
    for (const [hash, { revision }] of this.#superfluous()) {
      try {
        await deleteRecord(this.#options, keyOf(hash), revision);
        this.#forget(hash);
      } catch (error) {
        this.#options.log.warn({}, 'sign-ins that are over were not swept', error);
        return;
      }
    }
  }

  async #read(hash: string): Promise<KeptRecord<SignInRecord> | undefined> {
    const { clock, store } = this.#options;
    // Another replica may have just opened it: the refusal is not final.
    if (!this.#known.has(hash) && this.#unknown.tryTake(1, clock.nowMs()) > 0) {
      throw signInBusy('sign-in');
    }
    return readRecord(store, schema, keyOf(hash));
  }

  #superfluous(): readonly [string, KnownSignIn][] {
    const nowMs = this.#options.clock.nowMs();
    const newestFirst = [...this.#known].sort(
      ([one, { createMs: a }], [other, { createMs: b }]) => b - a || (one < other ? -1 : 1),
    );
    const counts = new Map<string, number>();
    let count = 0;
    return newestFirst.filter(([, { caller, expireMs }]) => {
      const own = counts.get(caller) ?? 0;
      if (expireMs <= nowMs || own >= signInsPerCallerMax || count >= signInsMax) return true;
      counts.set(caller, own + 1);
      count += 1;
      return false;
    });
  }

  #isOver(record: SignInRecord): boolean {
    const { clock, store } = this.#options;
    return record.incarnation !== store.incarnation || expireMsOf(record) <= clock.nowMs();
  }

  async #principalIn(record: SignInRecord): Promise<Principal> {
    const { principalOfSecret, configSha256 } = this.#options;
    if (record.opener.case === 'token') {
      const { name, secretSha256 } = record.opener.value;
      return principalOfSecret(name, secretSha256);
    }
    const principal = granted(record, configSha256);
    if (principal === undefined) throw signInOver();
    return principal;
  }

  async #reread(hash: string): Promise<void> {
    const { store, log } = this.#options;
    try {
      const kept = await orUnavailable(store.get(keyOf(hash)));
      if (kept.kind === 'absent') this.#forget(hash);
    } catch (error) {
      // Once the store responds again, the watch reports what has changed.
      log.warn({}, 'a sign-in could not be read again', error);
    }
  }

  #note(hash: string, entry: Entry | undefined): void {
    if (entry === undefined) this.#forget(hash);
    else this.#learn(hash, decoded(entry), entry.revision);
  }

  #learn(hash: string, record: SignInRecord, revision: StoreRevision): void {
    // A sign-in from before the store was restored is removed like an expired one.
    const expireMs =
      record.incarnation === this.#options.store.incarnation ? expireMsOf(record) : 0;
    const createMs = createMsOf(record);
    this.#known.set(hash, { revision, caller: callerOf(record), createMs, expireMs });
  }

  #forget(hash: string): void {
    this.#known.delete(hash);
    this.#ends.notify(hash);
  }
}

/**
 * Ends every sign-in of the actor with this name in the audit stream, on every replica (invariant
 * 5). Returns how many there were. A sign-in that is opened at the same time may remain. Throws
 * `unavailable`.
 */
export async function endSignInsOf(store: StateStore, actor: Actor): Promise<number> {
  const { entries } = await orUnavailable(store.list(collection));
  let ended = 0;
  for (const entry of entries) {
    if (decoded(entry).actor !== actor) continue;
    const gone = await deleteRecord({ store }, entry.key, entry.revision);
    if (gone.kind === 'ok') ended += 1;
  }
  return ended;
}

/** A record that cannot be decoded counts as expired, like an empty one. */
function decoded({ value }: Entry): SignInRecord {
  try {
    return fromBinary(schema, value);
  } catch {
    // An empty record is over.
    return create(schema);
  }
}

function keyOf(hash: string): string {
  return storeKey(collection, hash);
}

/** The first cookie of this name that came with a call (RFC 6265 §4.2). */
export function cookieOf(context: CallContext, name: string): string | undefined {
  for (const pair of (context.header('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}

/**
 * Throws unless a page of this server sends the call: a browser names the page's origin with every
 * POST (Fetch Standard, "append a request `Origin` header"), and no page can change it.
 */
export function checkOrigin(context: CallContext): void {
  const host = context.header('host');
  if (host !== undefined && context.header('origin') === `https://${host}`) return;
  throw permissionDenied(
    'ORIGIN_WRONG',
    'A sign-in is valid only for pages of this control plane, whose browser names their origin. ' +
      'Programs send "authorization: Bearer TOKEN".',
  );
}

/** The sign-in was never in this store, has ended, or was removed for newer ones. */
export function signInOver(): ApiFailure {
  return unauthenticated('SESSION_OVER', 'The sign-in has ended. Sign in again.');
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
