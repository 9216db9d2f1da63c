/**
 * The operators' tokens in the store, and what follows when a token ends.
 *
 * Invariants:
 * 1. Each call reads the record of its token from the store: after a revocation on another replica
 *    the next call is refused here.
 * 2. Open streams end when the record of their token changes so, and at the expiry of the token.
 * 3. Only a caller that has the secret learns why its token is refused.
 * 4. The time of the last use is written once an hour at most, and never delays a call.
 *
 * Must not: keep the text of a token.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  asTokenId,
  Role,
  type TokenId,
  TokenSchema,
  tokenActor,
  userActor,
  store as wire,
} from '@rackwright/messages';
import {
  atWallTime,
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
  idOf,
  orUnavailable,
  readableRecordOf,
  readRecord,
  writeRecord,
} from '../records/index.ts';
import { Ends } from './ends.ts';
import { everywhere, type Principal } from './principal.ts';
import { signInBusy, tokenExpired, tokenRevoked, tokenUnknown } from './refusals.ts';
import { repeatEvery } from './repeated.ts';
import { isSameHash, parseToken } from './token.ts';

/** Id of the first token, whose text is in a file. */
export const firstTokenId = asTokenId('admin');

const schema = wire.TokenRecordSchema;
const usedIntervalMs = 3_600_000;
/** How long an ended token can be distinguished from one that never existed. */
export const rememberedMs = 30 * 86_400_000;
const sweepIntervalMs = 3_600_000;
/**
 * Calls with unknown tokens; more are refused without a read of the store. Guesses burden neither
 * the store nor the holders of known tokens.
 */
const unknownRate: BucketRate = { perSecond: 50, most: 50 };

export interface TokenBookOptions {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly following: StoreFollower;
  /** SHA-256 of the whole text of the first token, hex. */
  readonly firstTokenSha256: string;
}

/** Key of a token's record. */
export function tokenKey(tokenId: TokenId): string {
  return storeKey('tokens', tokenId);
}

/**
 * Key of the record that revokes a first token. The key contains the hash of the text, so the
 * revocation applies to that text forever.
 */
export function revokedFirstKey(sha256: string): string {
  return storeKey('revokedFirstTokens', sha256);
}

/** Whether the token of a record has been revoked or has expired. */
export function isTokenEnded({ revokeTime, token }: wire.TokenRecord, nowMs: number): boolean {
  if (revokeTime !== undefined) return true;
  return token?.expireTime !== undefined && timestampMs(token.expireTime) <= nowMs;
}

interface UsedToken {
  readonly record: wire.TokenRecord;
  readonly revision: StoreRevision | undefined;
}

/** See the header. */
export class TokenBook {
  readonly #options: TokenBookOptions;
  readonly #ends = new Ends();
  readonly #usedMs = new Map<TokenId, number>();
  /** Hashes of the secrets of known tokens, and whether each token has ended. */
  readonly #known = new Map<string, boolean>();
  /** The same hashes, by the key of their record. */
  readonly #proofs = new Map<string, string>();
  readonly #followed: FollowedValues;
  #cancelSweep: Cancel = () => undefined;
  readonly #unknown: Bucket;

  constructor(options: TokenBookOptions) {
    this.#options = options;
    this.#unknown = new Bucket(unknownRate, options.clock.nowMs());
    const note = (key: string, entry: Entry | undefined): void => this.#note(key, entry);
    this.#followed = followValues(options.following, 'tokens', note);
  }

  /** Resolves once every token is known: from then on no valid token is taken for a guess. */
  async start(): Promise<void> {
    await this.#followed.start();
    this.#cancelSweep = repeatEvery(this.#options.clock, sweepIntervalMs, () => this.sweep());
  }

  stop(): void {
    this.#followed.stop();
    this.#cancelSweep();
  }

  /** The holder of this text. Throws why the token is refused, or `unavailable`. */
  async principalOf(text: string): Promise<Principal> {
    const shown = parseToken(text);
    if (shown === undefined) throw tokenUnknown();
    return this.principalOfSecret(shown.tokenId, shown.secretSha256);
  }

  /** The holder of the token with this id and secret, as `principalOf`. */
  async principalOfSecret(tokenId: TokenId, secretSha256: Uint8Array): Promise<Principal> {
    if (tokenId === firstTokenId) throw tokenUnknown();
    // Only under its own id: otherwise the holder of one token could have the store read any other.
    const proof = Buffer.from(secretSha256).toString('hex');
    const isKnown = this.#proofs.get(tokenKey(tokenId)) === proof;
    // The token may have just been created: the refusal is not final.
    if (!isKnown && this.#unknown.tryTake(1, this.#options.clock.nowMs()) > 0)
      throw signInBusy('token');
    const kept = await readRecord(this.#options.store, schema, tokenKey(tokenId));
    if (kept === undefined || !isSameHash(secretSha256, kept.record.secretSha256)) {
      throw tokenUnknown();
    }
    const { token } = kept.record;
    this.#refuseOver(kept.record);
    this.#used(tokenId, kept);
    return {
      actor: tokenActor(tokenId),
      role: token?.role ?? Role.UNSPECIFIED,
      scope: { racks: token?.scope?.racks ?? [], pools: token?.scope?.pools ?? [] },
      token: `tokens/${tokenId}`,
      issuer: '',
      expireMs: token?.expireTime === undefined ? undefined : timestampMs(token.expireTime),
      proofSha256: proof,
    };
  }

  /** The first token, unless it was revoked; the caller has already compared its text. */
  async firstPrincipal(): Promise<Principal> {
    const { store, firstTokenSha256 } = this.#options;
    const gone = await readRecord(store, schema, revokedFirstKey(firstTokenSha256));
    if (gone !== undefined) this.#refuseOver(gone.record);
    if (this.#isUseDue(firstTokenId)) void this.#firstUsed();
    return {
      actor: userActor(firstTokenId),
      role: Role.ADMIN,
      scope: everywhere,
      token: `tokens/${firstTokenId}`,
      issuer: '',
      expireMs: undefined,
      proofSha256: firstTokenSha256,
    };
  }

  /**
   * Calls `end` when the credential of the principal ends, until the returned function is called
   * (invariant 2).
   */
  onEnd({ token, proofSha256, expireMs }: Principal, end: () => void): () => void {
    if (token === '') return this.#atExpiry(expireMs, end);
    const forget = this.#ends.add(proofSha256, end);
    // It may have been revoked between the check of the call and this line.
    const over = this.#known.get(proofSha256);
    if (over === true) end();
    if (over === undefined) void this.#reread(token, proofSha256);
    const cancel = this.#atExpiry(expireMs, end);
    return () => {
      cancel();
      forget();
    };
  }

  /** A newer record may have replaced it, or the watch lags. */
  async #reread(name: string, proof: string): Promise<void> {
    const { store, clock, log, firstTokenSha256 } = this.#options;
    if (proof === firstTokenSha256) return;
    try {
      const kept = await readRecord(store, schema, tokenKey(asTokenId(idOf(name))));
      const isIt = Buffer.from(kept?.record.secretSha256 ?? []).toString('hex') === proof;
      if (kept === undefined || !isIt || isTokenEnded(kept.record, clock.nowMs()))
        this.#ends.notify(proof);
    } catch (error) {
      // Once the store responds again, the watch reports what has changed.
      log.warn({ token: name }, 'a token could not be read again', error);
    }
  }

  #refuseOver({ token, revokeTime }: wire.TokenRecord): void {
    const name = token?.name ?? '';
    if (revokeTime !== undefined) {
      throw tokenRevoked(name, timestampDate(revokeTime).toISOString());
    }
    const { expireTime } = token ?? {};
    if (expireTime !== undefined && timestampMs(expireTime) <= this.#options.clock.nowMs()) {
      throw tokenExpired(name, timestampDate(expireTime).toISOString());
    }
  }

  /** Invariant 4. */
  #used(tokenId: TokenId, { record, revision }: UsedToken): void {
    const { clock } = this.#options;
    const usedMs = timeOf(record.token?.lastUsedTime);
    if (clock.nowMs() - usedMs < usedIntervalMs || !this.#isUseDue(tokenId)) return;
    this.#usedMs.set(tokenId, clock.nowMs());
    const next = clone(schema, record);
    next.token ??= create(TokenSchema);
    next.token.lastUsedTime = timestampFromMs(clock.nowMs());
    const expected = revision ?? 'absent';
    void writeRecord(this.#options, schema, tokenKey(tokenId), next, expected).catch(
      (error: unknown) => {
        this.#usedMs.delete(tokenId);
        this.#options.log.warn({ token: tokenId }, 'last use not written', error);
      },
    );
  }

  #isUseDue(tokenId: TokenId): boolean {
    const usedMs = this.#usedMs.get(tokenId) ?? Number.NEGATIVE_INFINITY;
    return this.#options.clock.nowMs() - usedMs >= usedIntervalMs;
  }

  /** The record of an earlier first token is replaced by one of the present text. */
  async #firstUsed(): Promise<void> {
    const { store, log, firstTokenSha256 } = this.#options;
    try {
      const kept = await readRecord(store, schema, tokenKey(firstTokenId));
      const hash = Buffer.from(firstTokenSha256, 'hex');
      const isOwn = isSameHash(kept?.record.secretSha256 ?? new Uint8Array(), hash);
      const record = isOwn && kept !== undefined ? kept.record : this.#newFirst();
      this.#used(firstTokenId, { record, revision: kept?.revision });
    } catch (error) {
      log.warn({ token: firstTokenId }, 'last use not written', error);
    }
  }

  #newFirst(): wire.TokenRecord {
    return create(schema, {
      token: { name: `tokens/${firstTokenId}`, role: Role.ADMIN },
      secretSha256: Buffer.from(this.#options.firstTokenSha256, 'hex'),
    });
  }

  #atExpiry(expireMs: number | undefined, end: () => void): Cancel {
    if (expireMs === undefined) return () => undefined;
    return atWallTime(this.#options.clock, expireMs, end);
  }

  /**
   * A hash without a record was removed, or another token has its name. A record that cannot be
   * decoded may be a revocation: its streams end too.
   */
  #note(key: string, entry: Entry | undefined): void {
    const record = entry && readableRecordOf(this.#options, schema, entry);
    const proof = record && Buffer.from(record.secretSha256).toString('hex');
    const before = this.#proofs.get(key);
    if (before !== undefined && before !== proof) {
      this.#known.delete(before);
      if (before !== this.#options.firstTokenSha256) this.#ends.notify(before);
    }
    if (record === undefined || proof === undefined) {
      this.#proofs.delete(key);
      return;
    }
    this.#proofs.set(key, proof);
    const over = isTokenEnded(record, this.#options.clock.nowMs());
    this.#known.set(proof, over);
    if (over) this.#ends.notify(proof);
  }

  /** Removes tokens that ended long ago. The first token's own record stays. */
  async sweep(): Promise<void> {
    const { store, clock, log } = this.#options;
    try {
      const { entries } = await orUnavailable(store.list('tokens'));
      for (const entry of entries) {
        const { key, revision } = entry;
        const record = readableRecordOf(this.#options, schema, entry);
        const isFirst = key === tokenKey(firstTokenId);
        if (record !== undefined && !isFirst && endOf(record) <= clock.nowMs() - rememberedMs) {
          await deleteRecord(this.#options, key, revision);
        }
      }
    } catch (error) {
      log.warn({}, 'old tokens could not be swept', error);
    }
  }
}

/** When a token ended or will end. */
function endOf({ revokeTime, token }: wire.TokenRecord): number {
  if (revokeTime !== undefined) return timestampMs(revokeTime);
  return token?.expireTime === undefined ? Infinity : timestampMs(token.expireTime);
}

function timeOf(time: Parameters<typeof timestampMs>[0] | undefined): number {
  return time === undefined ? Number.NEGATIVE_INFINITY : timestampMs(time);
}
