/**
 * Decides who gets an agent's certificate, from a rack's record alone; pure.
 *
 * Invariants:
 * 1. A token works once, for one rack, for 15 minutes; the record has only its hash.
 * 2. The same key with the same token is answered again, also after expiry: a lost response does
 *    not use up the token.
 * 3. A rack has one registered key. Another key replaces it only with a token that a person created
 *    to replace exactly that key. The old key is then revoked, like that of an agent that is no
 *    longer trusted.
 * 4. A revoked or replaced key is never registered again, in any rack (`agents.ts` stores it apart
 *    from racks). No earlier token remains valid after it: a removed agent may hold one.
 * 5. A caller with neither a token nor a known key learns neither whether the rack exists, nor
 *    whether it has an agent.
 * 6. Each other error has its own message, which ends with what to do next.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { clone, create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  type RackId,
  RackSchema,
  type RackStatus,
  RackStatusSchema,
  RevokedAgentSchema,
  readActor,
  store,
} from '@rackwright/messages';
import { idOf } from '../records/index.ts';

/** How long a join token can be used, milliseconds. */
export const joinTokenLifetimeMs = 15 * 60_000;
/** Tokens remembered per rack, so that an old one differs from an unknown one. */
export const joinTokensKeptMax = 16;
/** Former keys remembered per rack; a forgotten one is merely unknown. */
export const revokedKeysMax = 32;
/** Digits of a fingerprint in sentences. */
const keyShownChars = 16;

export interface TokenUse {
  readonly rackId: RackId;
  /** SHA-256 of the secret, 32 bytes. */
  readonly secretSha256: Uint8Array;
}

export interface AgentKey {
  /** SPKI, DER. */
  readonly publicKeyDer: Uint8Array;
  /** SHA-256 of it, 32 bytes. */
  readonly sha256: Uint8Array;
}

/** The properties of a certificate that is about to be issued. */
export interface CertificatePlan {
  readonly expiresMs: number;
  /** SHA-256 of the authority that signs it, lower-case hex. */
  readonly caSha256: string;
}

export type EnrolmentDecision =
  /** Issue; `next` must be stored first. */
  { readonly kind: 'issue'; readonly next: store.RackRecord } | RefusedKey;

/** Why a key gets no certificate, or is no longer an agent's. */
export interface RefusedKey<Reason extends EnrolmentRefusal = EnrolmentRefusal> {
  readonly kind: 'refused';
  readonly reason: Reason;
  readonly message: string;
}

export type EnrolmentRefusal =
  | 'TOKEN_UNKNOWN'
  | 'TOKEN_EXPIRED'
  | 'TOKEN_USED'
  | 'TOKEN_OF_OTHER_RACK'
  | 'AGENT_REGISTERED'
  | KeyRefusal;

/** Why the holder of a key is not the rack's agent. */
export type KeyRefusal =
  | 'AGENT_KEY_REVOKED'
  | 'AGENT_KEY_REPLACED'
  | 'KEY_UNKNOWN'
  | 'RACK_UNKNOWN';

/** The inputs of a new join token. */
export interface NewToken {
  readonly secretSha256: Uint8Array;
  readonly expireTime: Timestamp;
  /** The token may replace the registered key. */
  readonly replaceAgent: boolean;
  readonly by: Actor;
  /** The authority whose fingerprint it contains. */
  readonly caSha256: string;
}

/** The record with a new token added (invariant 1), unless the rack has an agent (invariant 3). */
export function addJoinToken(
  record: store.RackRecord,
  { secretSha256, expireTime, replaceAgent, by, caSha256 }: NewToken,
): { readonly kind: 'added'; readonly next: store.RackRecord } | RefusedKey {
  if (isJoined(record) && !replaceAgent) return refusalOfRegistered(record);
  const next = clone(store.RackRecordSchema, record);
  const replacesSha256 = isJoined(record) ? sha256(record.agentPublicKey) : new Uint8Array();
  const token = { secretSha256, expireTime, replacesSha256, by, caSha256 };
  next.joinTokens.push(create(store.JoinTokenRecordSchema, token));
  next.joinTokens.splice(0, next.joinTokens.length - joinTokensKeptMax);
  return { kind: 'added', next };
}

/** Decides on a join token presented by `key` for the rack with this record. */
export function decideJoin(
  record: store.RackRecord,
  use: TokenUse,
  key: AgentKey,
  plan: CertificatePlan,
  nowMs: number,
): EnrolmentDecision {
  const rack = `racks/${use.rackId}`;
  const again = `Make a new one: rackwright rack join-token ${use.rackId}`;
  const token = tokenOf(record, use);
  if (token === undefined) return refusalOfUnknownToken(use.rackId);
  if (token.usedBySha256.length > 0) {
    const isRepeated = same(token.usedBySha256, key.sha256) && isRegistered(record, key);
    if (isRepeated) return { kind: 'issue', next: planned(record, plan) };
    const instead = isJoined(record) ? ' --replace' : '';
    return refused('TOKEN_USED', `This join token has been used already. ${again}${instead}`);
  }
  const expiresMs = token.expireTime === undefined ? 0 : timestampMs(token.expireTime);
  if (nowMs >= expiresMs) {
    const since = new Date(expiresMs).toISOString();
    const now = new Date(nowMs).toISOString();
    const message = `This join token expired at ${since}; the control plane has ${now}. ${again}`;
    return refused('TOKEN_EXPIRED', message);
  }
  const revoked = revocationOf(record, key.sha256);
  if (revoked !== undefined) return refusalOfRetired(use.rackId, revoked);
  const mayReplace =
    isRegistered(record, key) || same(token.replacesSha256, sha256(record.agentPublicKey));
  if (isJoined(record) && !mayReplace) return refusalOfRegistered(record);
  if (
    token.replacesSha256.length > 0 &&
    !same(token.replacesSha256, sha256(record.agentPublicKey))
  ) {
    const message = `This join token was for replacing a key that ${rack} has no more. ${again}`;
    return refused('TOKEN_UNKNOWN', message);
  }
  return { kind: 'issue', next: joined(planned(record, plan), token, key, nowMs) };
}

function joined(
  next: store.RackRecord,
  used: store.JoinTokenRecord,
  key: AgentKey,
  nowMs: number,
): store.RackRecord {
  for (const each of next.joinTokens) {
    if (same(each.secretSha256, used.secretSha256)) each.usedBySha256 = key.sha256;
  }
  if (isRegistered(next, key)) return next;
  if (isJoined(next)) {
    const reason = 'another agent has joined with a token for replacing this one';
    retireKey(next, { by: readActor(used.by), reason, replaced: true, nowMs });
    next.joinTokens = next.joinTokens.filter(isUsed);
  }
  next.agentPublicKey = key.publicKeyDer;
  const status = statusOf(next);
  status.agentKeySha256 = Buffer.from(key.sha256).toString('hex');
  status.agentJoinTime = timestampFromMs(nowMs);
  return next;
}

/** Decides on a registered key that requests a new certificate. */
export function decideRenewal(
  rackId: RackId,
  record: store.RackRecord | undefined,
  key: AgentKey,
  plan: CertificatePlan,
): EnrolmentDecision {
  const revoked = record && revocationOf(record, key.sha256);
  if (revoked !== undefined) return refusalOfRetired(rackId, revoked);
  // Invariant 5
  if (record === undefined || !isRegistered(record, key)) return strangerTo(rackId);
  return { kind: 'issue', next: planned(record, plan) };
}

/** The refusal of a token that the rack does not have, if the rack exists (invariant 5). */
export function refusalOfUnknownToken(rackId: RackId): RefusedKey {
  return refused(
    'TOKEN_UNKNOWN',
    `racks/${rackId} has no such join token, or none any more. Make a new one: rackwright rack ` +
      `join-token ${rackId}, with --replace where the rack has an agent`,
  );
}

/** The refusal of a key that the rack does not have, if the rack exists (invariant 5). */
function strangerTo(rackId: RackId): RefusedKey {
  return refused(
    'KEY_UNKNOWN',
    `This agent’s key is not known as one of racks/${rackId}: the rack may be gone or have been ` +
      'made anew, or another agent may be registered with it. Look (rackwright rack get ' +
      `${rackId}) and let the agent join again (rackwright rack join-token ${rackId}, with ` +
      '--replace in another one’s place), or stop it',
  );
}

/** Why the holder of a key is not the rack's agent, or undefined. */
export function whyNotAgent(
  rackId: RackId,
  record: store.RackRecord | undefined,
  keySha256: Uint8Array,
): RefusedKey<KeyRefusal> | undefined {
  if (record === undefined) return refusalOfUnknownRack(rackId);
  if (isJoined(record) && same(sha256(record.agentPublicKey), keySha256)) return undefined;
  const revoked = revocationOf(record, keySha256);
  if (revoked !== undefined) return refusalOfRetired(rackId, revoked);
  if (!isJoined(record)) {
    return refused(
      'KEY_UNKNOWN',
      `racks/${rackId} has no agent, and does not know this one’s key: it may have been made ` +
        `anew. Let the agent join again: rackwright rack join-token ${rackId}`,
    );
  }
  return refused(
    'AGENT_KEY_REPLACED',
    `Another agent is registered with racks/${rackId}. If this is the right one, let it join in ` +
      `the other one’s place: rackwright rack join-token ${rackId} --replace`,
  );
}

/** The record without its registered key, which can never be registered again (invariant 4). */
export function revoke(
  record: store.RackRecord,
  by: Actor,
  reason: string,
  nowMs: number,
): store.RackRecord {
  const next = clone(store.RackRecordSchema, record);
  retireKey(next, { by, reason, replaced: false, nowMs });
  next.joinTokens = next.joinTokens.filter(isUsed);
  next.agentPublicKey = new Uint8Array();
  const status = statusOf(next);
  status.agentKeySha256 = '';
  delete status.agentJoinTime;
  delete status.certificateExpireTime;
  return next;
}

interface Retirement {
  readonly by: Actor;
  readonly reason: string;
  readonly replaced: boolean;
  readonly nowMs: number;
}

function retireKey(next: store.RackRecord, { by, reason, replaced, nowMs }: Retirement): void {
  const keySha256 = sha256(next.agentPublicKey);
  const time = timestampFromMs(nowMs);
  const record = { keySha256, time, by, reason, replaced };
  next.revokedKeys.push(create(store.RevokedKeyRecordSchema, record));
  next.revokedKeys.splice(0, next.revokedKeys.length - revokedKeysMax);
  // Its session is no longer valid, on any replica.
  next.sessionReplica = '';
  next.trustedCaSha256 = [];
  next.certificateCaSha256 = '';
  const status = statusOf(next);
  status.revokedKeys = next.revokedKeys.length;
  status.lastRevoked = create(RevokedAgentSchema, {
    keySha256: Buffer.from(keySha256).toString('hex'),
    time,
    by,
    reason,
    replaced,
  });
}

function planned(record: store.RackRecord, plan: CertificatePlan): store.RackRecord {
  const next = clone(store.RackRecordSchema, record);
  next.certificateCaSha256 = plan.caSha256;
  statusOf(next).certificateExpireTime = timestampFromMs(plan.expiresMs);
  return next;
}

function statusOf(record: store.RackRecord): RackStatus {
  record.rack ??= create(RackSchema);
  record.rack.status ??= create(RackStatusSchema);
  return record.rack.status;
}

function revocationOf(
  { revokedKeys }: store.RackRecord,
  keySha256: Uint8Array,
): store.RevokedKeyRecord | undefined {
  return revokedKeys.find((each) => same(each.keySha256, keySha256));
}

/** The refusal of a key that was revoked or replaced (invariant 4). */
export function refusalOfRetired(
  rackId: RackId,
  revoked: store.RevokedKeyRecord,
): RefusedKey<KeyRefusal> {
  const { by, reason, replaced, time } = revoked;
  const when = time === undefined ? '' : ` at ${new Date(timestampMs(time)).toISOString()}`;
  const again =
    'If it shall serve the rack again, it needs a key of its own that is new: rackwright rack ' +
    `join-token ${rackId} --replace, then rackwright-agent join --new-key ADDRESS -`;
  return replaced
    ? refused(
        'AGENT_KEY_REPLACED',
        `Another agent took this one’s place in racks/${rackId}${when} (by ${by}). Stop this ` +
          `one. ${again}`,
      )
    : refused(
        'AGENT_KEY_REVOKED',
        `The key of this agent of racks/${rackId} was revoked${when} by ${by}: ${reason}. ${again}`,
      );
}

function refusalOfRegistered(record: store.RackRecord): RefusedKey {
  const { name = '', status } = record.rack ?? {};
  const joinTime = status?.agentJoinTime;
  const since =
    joinTime === undefined ? '' : `, joined ${new Date(timestampMs(joinTime)).toISOString()}`;
  const key = Buffer.from(sha256(record.agentPublicKey)).toString('hex').slice(0, keyShownChars);
  return refused(
    'AGENT_REGISTERED',
    `${name} has an agent (key ${key}…${since}), which another one must not push aside unasked. ` +
      'If its box is dead or the agent was set up anew, say so: rackwright rack join-token ' +
      `${idOf(name)} --replace`,
  );
}

function refusalOfUnknownRack(rackId: RackId): RefusedKey<KeyRefusal> {
  return refused(
    'RACK_UNKNOWN',
    `racks/${rackId} does not exist (any more). Stop this agent; or, if the rack shall be there, ` +
      `make it again and let the agent join: rackwright rack create ${rackId}`,
  );
}

/** The refusal of a token for a rack when the key belongs to another one. */
export function refusalOfOtherRack(use: TokenUse, ownRackId: RackId): RefusedKey {
  return refused(
    'TOKEN_OF_OTHER_RACK',
    `This agent belongs to racks/${ownRackId}, the join token is for racks/${use.rackId}. ` +
      `Use a token of its own rack (rackwright rack join-token ${ownRackId} --replace), or give ` +
      'the agent an empty state folder if it shall serve the other rack.',
  );
}

/** The refusal of a key that no rack has, presented without a token. */
export function refusalOfUnknownKey(): RefusedKey {
  return refused(
    'KEY_UNKNOWN',
    'No rack knows this agent’s key. Give the agent a join token: rackwright rack join-token RACK',
  );
}

/** The key that `next` no longer has, as a retired one; undefined when it is the same. */
export function retiredKeyOf(
  before: store.RackRecord,
  next: store.RackRecord,
): store.RevokedKeyRecord | undefined {
  if (!isJoined(before) || same(before.agentPublicKey, next.agentPublicKey)) return undefined;
  return revocationOf(next, sha256(before.agentPublicKey));
}

/** Whether this key has enrolled with this token. */
export function hasUsed(record: store.RackRecord, use: TokenUse, key: AgentKey): boolean {
  return same(tokenOf(record, use)?.usedBySha256 ?? new Uint8Array(), key.sha256);
}

function tokenOf(record: store.RackRecord, use: TokenUse): store.JoinTokenRecord | undefined {
  return record.joinTokens.find(({ secretSha256 }) => same(secretSha256, use.secretSha256));
}

function isUsed({ usedBySha256 }: store.JoinTokenRecord): boolean {
  return usedBySha256.length > 0;
}

/** Whether `key` is the rack's registered one. */
export function isRegistered(record: store.RackRecord, key: AgentKey): boolean {
  return same(record.agentPublicKey, key.publicKeyDer);
}

/** Whether the rack has an agent. */
export function isJoined(record: store.RackRecord): boolean {
  return record.agentPublicKey.length > 0;
}

function refused<R extends EnrolmentRefusal>(reason: R, message: string): RefusedKey<R> {
  return { kind: 'refused', reason, message };
}

/** The stored form of keys and of tokens' secrets. */
export function sha256(bytes: Uint8Array | string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(bytes).digest());
}

/** In lower case. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function same(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}
