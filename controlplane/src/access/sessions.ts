/**
 * People who have signed in by a browser: a cookie that names a session in the store.
 *
 * Invariants:
 * 1. A session never carries more than what opened it: one of a token is looked up by that token
 *    with every call, so that it ends with it; one of the identity provider has an end of its own,
 *    and holds only under the configuration that gave it its role.
 * 2. A cookie counts only together with the origin of this very server (`checkOrigin`): a page of
 *    another site that has a browser send it gets nothing carried out.
 * 3. Sessions are bounded, in all and of each caller: the oldest gives way.
 * 4. A name of a session is known to its browser alone: the store has its hash, and of a token the
 *    hash of its secret.
 * 5. A session counts by its record as it stands in the store at that very moment: what was signed
 *    out of at another replica is refused here with the next call, and its streams end.
 *
 * Must not: write anything when a session is used.
 */
import { createHash } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import {
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
import { type Entry, type Revision, type StateStore, storeKey } from '@rackwright/store';
import { type FollowedValues, type Following, followValues } from '../following/index.ts';
import {
  answered,
  deleteRecord,
  idOfKey,
  type Kept,
  readRecord,
  writeRecord,
} from '../records/index.ts';
import { Ends } from './ends.ts';
import type { Principal } from './principal.ts';
import { signInBusy } from './refusals.ts';
import { repeated } from './repeated.ts';
import {
  callerOf,
  createMsOf,
  expireMsOf,
  granted,
  type SessionRecord,
  sessionSchema as schema,
  sessionRecord,
} from './session-record.ts';

/** Its prefix binds a cookie to this host, all paths and TLS (RFC 6265bis §4.1.3.2). */
export const sessionCookie = '__Host-rackwright-session';

const collection = 'browserSessions';
const sessionsMax = 1_000;
const sessionsPerCallerMax = 20;
const nameBytes = 32;
const nameShape = /^[A-Za-z0-9_-]{43}$/;
/** How long the record of a session that is over stays, at most, while the store answers. */
const sweepIntervalMs = 600_000;
/** Calls that name a session that is not known here; more are refused unlooked. */
const unknownRate: BucketRate = { perSecond: 50, most: 50 };

/** What has opened a session. */
export interface Opener {
  /** A session of a token ends with it; one of the provider outlives what the provider has sent. */
  readonly kind: 'token' | 'provider';
  readonly principal: Principal;
}

export interface SessionsOptions {
  readonly store: StateStore;
  readonly following: Following;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How long one lasts at most, from when it was opened. */
  readonly lifeMs: number;
  /** SHA-256, hex, of the configuration that gives people of the provider their roles. */
  readonly configSha256: string;
  /** Who has the token of this name and secret; throws why it is not let in. */
  readonly principalOfSecret: (name: string, secretSha256: Uint8Array) => Promise<Principal>;
}

/** A session that was just opened. */
export interface OpenedSession {
  /** What the browser is to keep, as the value of `sessionCookie`. */
  readonly name: string;
  /** Wall time, milliseconds. */
  readonly expireMs: number;
}

interface Known {
  readonly revision: Revision;
  readonly caller: string;
  readonly createMs: number;
  readonly expireMs: number;
}

/** See the header. */
export class Sessions {
  readonly #options: SessionsOptions;
  /** What the store has, as it is followed, by the hash of the name. */
  readonly #known = new Map<string, Known>();
  /** What ends with a session, by the hash of its name. */
  readonly #ends = new Ends();
  readonly #followed: FollowedValues;
  readonly #unknown: Bucket;
  #cancelSweep: Cancel = () => undefined;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#unknown = new Bucket(unknownRate, options.clock.nowMs());
    this.#followed = followValues(options.following, collection, (key, entry) =>
      this.#note(idOfKey(key), entry),
    );
  }

  /** Resolves once every session is known: none of them is taken for a guess. */
  async start(): Promise<void> {
    await this.#followed.start();
    this.#cancelSweep = repeated(this.#options.clock, sweepIntervalMs, () => this.sweep());
  }

  stop(): void {
    this.#followed.stop();
    this.#cancelSweep();
  }

  /** Opens one. Bounded by invariant 3. Throws `unavailable`. */
  async open({ kind, principal }: Opener): Promise<OpenedSession> {
    const { clock, random, store, lifeMs, configSha256 } = this.#options;
    const createMs = clock.nowMs();
    const ownEndMs = kind === 'token' ? (principal.expireMs ?? Infinity) : Infinity;
    const expireMs = Math.min(createMs + lifeMs, ownEndMs);
    const name = Buffer.from(random.bytes(nameBytes)).toString('base64url');
    const hash = hashOf(name);
    const { incarnation } = store;
    const record = sessionRecord({ principal, createMs, expireMs, incarnation, configSha256 });
    const written = await writeRecord(this.#options, schema, keyOf(hash), record, 'absent');
    // Of 256 random bits: somebody else draws them.
    if (written.kind === 'conflict') throw sessionOver();
    this.#learn(hash, record, written.revision);
    await this.sweep();
    return { name, expireMs };
  }

  /** Whose session a call names; undefined: its cookies name none. Throws why it does not count. */
  async principalOf(context: CallContext): Promise<Principal | undefined> {
    const name = cookieOf(context, sessionCookie);
    if (name === undefined) return undefined;
    checkOrigin(context);
    if (!nameShape.test(name)) throw sessionOver();
    const hash = hashOf(name);
    const kept = await this.#look(hash);
    if (kept === undefined || this.#isOver(kept.record)) throw sessionOver();
    const principal = await this.#principalIn(kept.record);
    return { ...principal, expireMs: expireMsOf(kept.record), session: hash };
  }

  /** Ends the session that a call names. False: there was none. Throws `unavailable`. */
  async close(context: CallContext): Promise<boolean> {
    const name = cookieOf(context, sessionCookie);
    if (name === undefined || !nameShape.test(name)) return false;
    const hash = hashOf(name);
    const kept = await this.#look(hash);
    if (kept === undefined) return false;
    // A record is written once: whoever was faster has deleted it.
    await deleteRecord(this.#options, keyOf(hash), kept.revision);
    this.#forget(hash);
    return true;
  }

  /**
   * Calls `end` once the session of this hash is signed out of or gives way, until the returned
   * function is called. By the clock it ends as its principal does.
   */
  onEnd(hash: string, end: () => void): () => void {
    const cancel = this.#ends.add(hash, end);
    // It may have ended after it was let in, and before this; or it is not followed yet.
    if (!this.#known.has(hash)) void this.#lookAgain(hash);
    return cancel;
  }

  /** Takes away what is over, and what has no room (invariant 3). */
  async sweep(): Promise<void> {
    for (const [hash, { revision }] of this.#superfluous()) {
      try {
        await deleteRecord(this.#options, keyOf(hash), revision);
        this.#forget(hash);
      } catch (error) {
        this.#options.log.warn({}, 'sessions that are over were not swept', error);
        return;
      }
    }
  }

  async #look(hash: string): Promise<Kept<SessionRecord> | undefined> {
    const { clock, store } = this.#options;
    // It may be one that another replica has just opened: nothing is said of it that is final.
    if (!this.#known.has(hash) && this.#unknown.tryTake(1, clock.nowMs()) > 0) {
      throw signInBusy('session');
    }
    return readRecord(store, schema, keyOf(hash));
  }

  #superfluous(): readonly [string, Known][] {
    const nowMs = this.#options.clock.nowMs();
    const newestFirst = [...this.#known].sort(
      ([one, { createMs: a }], [other, { createMs: b }]) => b - a || (one < other ? -1 : 1),
    );
    const counts = new Map<string, number>();
    let count = 0;
    return newestFirst.filter(([, { caller, expireMs }]) => {
      const own = counts.get(caller) ?? 0;
      if (expireMs <= nowMs || own >= sessionsPerCallerMax || count >= sessionsMax) return true;
      counts.set(caller, own + 1);
      count += 1;
      return false;
    });
  }

  #isOver(record: SessionRecord): boolean {
    const { clock, store } = this.#options;
    return record.incarnation !== store.incarnation || expireMsOf(record) <= clock.nowMs();
  }

  async #principalIn(record: SessionRecord): Promise<Principal> {
    const { principalOfSecret, configSha256 } = this.#options;
    if (record.opener.case === 'token') {
      const { name, secretSha256 } = record.opener.value;
      return principalOfSecret(name, secretSha256);
    }
    const principal = granted(record, configSha256);
    if (principal === undefined) throw sessionOver();
    return principal;
  }

  async #lookAgain(hash: string): Promise<void> {
    const { store, log } = this.#options;
    try {
      const kept = await answered(store.get(keyOf(hash)));
      if (kept.kind === 'absent') this.#forget(hash);
    } catch (error) {
      // Once the store answers again, what has changed is told.
      log.warn({}, 'a session was not looked at again', error);
    }
  }

  #note(hash: string, entry: Entry | undefined): void {
    if (entry === undefined) this.#forget(hash);
    else this.#learn(hash, decoded(entry), entry.revision);
  }

  #learn(hash: string, record: SessionRecord, revision: Revision): void {
    // One of before the store was restored is swept with what is over.
    const expireMs =
      record.incarnation === this.#options.store.incarnation ? expireMsOf(record) : 0;
    const createMs = createMsOf(record);
    this.#known.set(hash, { revision, caller: callerOf(record), createMs, expireMs });
  }

  #forget(hash: string): void {
    this.#known.delete(hash);
    this.#ends.tell(hash);
  }
}

/**
 * Ends every session of whom the audit stream names so, on every replica (invariant 5); how many
 * there were. One that is opened at the same time may stay. Throws `unavailable`.
 */
export async function endSessionsOf(store: StateStore, actor: string): Promise<number> {
  const { entries } = await answered(store.list(collection));
  let ended = 0;
  for (const entry of entries) {
    if (decoded(entry).actor !== actor) continue;
    const gone = await deleteRecord({ store }, entry.key, entry.revision);
    if (gone.kind === 'ok') ended += 1;
  }
  return ended;
}

/** One that cannot be decoded is over, as one that says nothing is. */
function decoded({ value }: Entry): SessionRecord {
  try {
    return fromBinary(schema, value);
  } catch {
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
 * Throws unless a page of this very server sends the call: a browser names the page's origin with
 * every POST (Fetch Standard, "append a request `Origin` header"), and no page can change it.
 */
export function checkOrigin(context: CallContext): void {
  const host = context.header('host');
  if (host !== undefined && context.header('origin') === `https://${host}`) return;
  throw permissionDenied(
    'ORIGIN_WRONG',
    'A session is good for pages of this control plane alone, whose browser names their origin. ' +
      'Programs send "authorization: Bearer TOKEN".',
  );
}

/** Its session was never one of this store, has ended, or gave way to others. */
export function sessionOver(): ApiFailure {
  return unauthenticated('SESSION_OVER', 'The session has ended. Sign in again.');
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
