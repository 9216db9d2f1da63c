/**
 * Who gets an agent's certificate, decided from a rack's record alone; pure.
 *
 * Invariants:
 * 1. A token works once, for one rack, for 15 minutes; the record holds only its hash.
 * 2. The same key with the same token is answered again, also after expiry: a lost reply burns
 *    nothing.
 * 3. A rack has one registered key. A new token replaces it: the agent's disk was lost.
 * 4. Each way of being wrong has its own words, ending with what to do next.
 */
import { timingSafeEqual } from 'node:crypto';
import { clone, create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { store } from '@rackwright/api';

/** How long a join token can be used, milliseconds. */
export const joinTokenLifetimeMs = 15 * 60_000;
/** Tokens remembered per rack, so that an old one is told apart from an unknown one. */
export const joinTokensKeptMax = 16;

export interface TokenUse {
  readonly rackId: string;
  /** SHA-256 of the secret, 32 bytes. */
  readonly secretSha256: Uint8Array;
}

export interface AgentKey {
  /** SPKI, DER. */
  readonly publicKeyDer: Uint8Array;
  /** SHA-256 of it, 32 bytes. */
  readonly sha256: Uint8Array;
}

export type EnrolmentDecision =
  /** Issue; `next` is to be stored before, when something changes. */
  | { readonly kind: 'issue'; readonly next?: store.RackRecord }
  | { readonly kind: 'refused'; readonly reason: EnrolmentRefusal; readonly message: string };

export type EnrolmentRefusal =
  | 'TOKEN_UNKNOWN'
  | 'TOKEN_EXPIRED'
  | 'TOKEN_USED'
  | 'TOKEN_OF_OTHER_RACK'
  | 'KEY_UNKNOWN';

/** The record with a new token added (invariant 1). */
export function addJoinToken(
  record: store.RackRecord,
  secretSha256: Uint8Array,
  nowMs: number,
): { readonly next: store.RackRecord; readonly expireTime: Timestamp } {
  const next = clone(store.RackRecordSchema, record);
  const expireTime = timestampFromMs(nowMs + joinTokenLifetimeMs);
  next.joinTokens.push(create(store.JoinTokenRecordSchema, { secretSha256, expireTime }));
  next.joinTokens.splice(0, next.joinTokens.length - joinTokensKeptMax);
  return { next, expireTime };
}

/** Decides on a join token presented by `key` for the rack with this record. */
export function decideJoin(
  record: store.RackRecord,
  use: TokenUse,
  key: AgentKey,
  nowMs: number,
): EnrolmentDecision {
  const rack = `racks/${use.rackId}`;
  const again = `Make a new one: rackwright rack join-token ${use.rackId}`;
  const token = record.joinTokens.find(({ secretSha256 }) => same(secretSha256, use.secretSha256));
  if (token === undefined) {
    return refused('TOKEN_UNKNOWN', `${rack} has no such join token. ${again}`);
  }
  if (token.usedBySha256.length > 0) {
    if (same(token.usedBySha256, key.sha256) && isRegistered(record, key)) return { kind: 'issue' };
    return refused('TOKEN_USED', `This join token has been used by another agent. ${again}`);
  }
  const expiresMs = token.expireTime === undefined ? 0 : timestampMs(token.expireTime);
  if (nowMs >= expiresMs) {
    const since = new Date(expiresMs).toISOString();
    return refused('TOKEN_EXPIRED', `This join token expired at ${since}. ${again}`);
  }
  const next = clone(store.RackRecordSchema, record);
  for (const each of next.joinTokens) {
    if (same(each.secretSha256, use.secretSha256)) each.usedBySha256 = key.sha256;
  }
  next.agentPublicKey = key.publicKeyDer;
  return { kind: 'issue', next };
}

/** The refusal of a token for a rack when the key belongs to another one. */
export function otherRack(use: TokenUse, ownRackId: string): EnrolmentDecision {
  return refused(
    'TOKEN_OF_OTHER_RACK',
    `This agent belongs to racks/${ownRackId}, the join token is for racks/${use.rackId}. ` +
      `Use a token of its own rack (rackwright rack join-token ${ownRackId}), or give the agent ` +
      'an empty data folder if it shall serve the other rack.',
  );
}

/** The refusal of a key that no rack knows, presented without a token. */
export function unknownKey(): EnrolmentDecision {
  return refused(
    'KEY_UNKNOWN',
    'No rack knows this agent’s key. Give the agent a join token: rackwright rack join-token RACK',
  );
}

/** Whether `key` is the rack's registered one. */
export function isRegistered(record: store.RackRecord, key: AgentKey): boolean {
  return same(record.agentPublicKey, key.publicKeyDer);
}

function refused(reason: EnrolmentRefusal, message: string): EnrolmentDecision {
  return { kind: 'refused', reason, message };
}

function same(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}
