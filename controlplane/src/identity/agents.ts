/**
 * Certificates and join tokens of agents: the shell around `enrolment.ts`, over the racks' records.
 *
 * Invariants:
 * 1. The record behind a certificate is durable before the certificate is made.
 * 2. An agent counts as its rack's only with the presently registered key: a certificate whose key
 *    was revoked or replaced is refused before it expires.
 * 3. Without a valid token, or a registered key, a caller cannot make us sign or write.
 * 4. Each call reads only its own rack, however many racks there are.
 */
import { clone } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  ApiFailure,
  type CallContext,
  checkCertificateProof,
  type FieldViolation,
  failedPrecondition,
  formatJoinToken,
  invalidArgument,
  joinSecretBytes,
  notFound,
  parseJoinSecret,
  permissionDenied,
  proofNonceBytesMax,
  proofNonceBytesMin,
  type RackId,
  type RackName,
  type RequestId,
  readP256PublicKey,
  unauthenticated,
  store as wire,
} from '@rackwright/messages';
import type { Random } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import {
  appliedId,
  changeRecord,
  hasApplied,
  idOf,
  type RecordWriter,
  readRecord,
  withApplied,
  writeRecord,
} from '../records/index.ts';
import { type Issuer, issueAgentCertificate, rackOfUris } from './authority.ts';
import {
  type AgentKey,
  addJoinToken,
  type CertificatePlan,
  decideJoin,
  decideRenewal,
  type EnrolmentDecision,
  hasUsed,
  hex,
  isJoined,
  isRegistered,
  joinTokenLifetimeMs,
  refusalOfOtherRack,
  refusalOfRetired,
  refusalOfUnknownKey,
  refusalOfUnknownToken,
  retiredKeyOf,
  revoke,
  sha256,
  type TokenUse,
  whyNotAgent,
} from './enrolment.ts';
import type { Identity } from './identity.ts';
import type { RackKeys } from './rack-keys.ts';
import { type RecentCertificate, RecentCertificates } from './recent-certificates.ts';

export interface AgentTrust {
  readonly writer: RecordWriter & { readonly random: Random };
  readonly identity: Pick<Identity, 'issuer' | 'caSha256' | 'agentCertificateMs'>;
}

/** The dependencies of issuing certificates. */
export interface EnrolmentTrust extends AgentTrust {
  readonly rackKeys: Pick<RackKeys, 'rackOf' | 'noteWritten'>;
}

/** An agent's request (`IssueCertificateRequest`). */
export interface CertificateRequest {
  readonly publicKey: Uint8Array;
  readonly nonce: Uint8Array;
  readonly signature: Uint8Array;
  /** "<rack id>.<secret>", or empty for renewal by the registered key. */
  readonly joinToken: string;
  /** "racks/RACK" that a renewing agent takes for its own; empty at enrolment. */
  readonly rack: RackName;
}

/** Who revokes the key of a rack's agent, and why. */
export interface Revocation {
  readonly rackId: RackId;
  readonly by: Actor;
  readonly reason: string;
  readonly requestId: RequestId;
}

/** Who creates a join token, and for what. */
export interface JoinTokenCall {
  readonly rackId: RackId;
  readonly replaceAgent: boolean;
  readonly by: Actor;
}

export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly rackId: RackId;
  /** Our clock, for an agent whose own is wrong. */
  readonly issueTime: Timestamp;
  readonly expireTime: Timestamp;
}

/**
 * Creates a join token for the rack. Throws `notFound`, or when it would replace an agent without
 * permission.
 */
export async function createJoinToken(
  { writer, identity }: AgentTrust,
  { rackId, replaceAgent, by }: JoinTokenCall,
): Promise<{
  readonly token: string;
  readonly expireTime: Timestamp;
  /** SHA-256 of the key that it may replace, lower-case hex; empty: none. */
  readonly replacesSha256: string;
}> {
  const secret = writer.random.bytes(joinSecretBytes);
  const { caSha256 } = identity;
  const token = formatJoinToken(caSha256, rackId, secret);
  const secretSha256 = sha256(Buffer.from(secret).toString('base64url'));
  const expireTime = timestampFromMs(identity.issuer.clock.nowMs() + joinTokenLifetimeMs);
  const made = await changeRack(writer, rackId, (record) => {
    const added = addJoinToken(record, { secretSha256, expireTime, replaceAgent, by, caSha256 });
    if (added.kind === 'refused') throw failedPrecondition(added.reason, added.message);
    return added.next;
  });
  const replacesSha256 = hex(made.joinTokens.at(-1)?.replacesSha256 ?? new Uint8Array());
  return { token, expireTime, replacesSha256 };
}

/** Enrolment, renewal and return after expiry. Throws the refusal. */
export async function issueCertificate(
  trust: EnrolmentTrust,
  request: CertificateRequest,
): Promise<IssuedCertificate> {
  const key = checkRequest(request);
  const recent = recentOf(trust);
  // The authority in the plan signs, even when another one becomes active in the meantime.
  const { issuer, caSha256, agentCertificateMs } = trust.identity;
  const atMs = issuer.clock.nowMs();
  const again = await lastCertificate(trust, request, key, caSha256);
  if (again !== undefined) {
    recent.repeat(hex(key.sha256), again, atMs);
    return { ...again.answer, issueTime: timestampFromMs(atMs) };
  }
  return await recent.make(hex(key.sha256), async () => {
    const lifetimeMs = lifetimeOf(issuer, agentCertificateMs, atMs);
    const plan = { expiresMs: atMs + lifetimeMs, caSha256 };
    const rackId =
      request.joinToken === ''
        ? await renew(trust, request, key, plan)
        : await join(trust, request, key, plan, atMs);
    const certificate = await issueAgentCertificate(issuer, key.publicKeyDer, rackId, lifetimeMs);
    const answer = {
      certificatePem: `${certificate.toString('pem')}\n`,
      rackId,
      issueTime: timestampFromMs(issuer.clock.nowMs()),
      expireTime: timestampFromDate(certificate.notAfter),
    };
    return { rackId, caSha256, atMs, lifetimeMs, answer };
  });
}

/** The key's last certificate, when it may be returned again as if just issued. */
async function lastCertificate(
  trust: AgentTrust,
  { joinToken, rack }: CertificateRequest,
  key: AgentKey,
  caSha256: string,
): Promise<RecentCertificate<IssuedCertificate> | undefined> {
  const nowMs = trust.identity.issuer.clock.nowMs();
  const last = recentOf(trust).last(hex(key.sha256), caSha256, nowMs);
  if (last === undefined) return undefined;
  const { rackId } = last;
  const kept = await readRecord(trust.writer.store, wire.RackRecordSchema, rackKey(rackId));
  if (kept === undefined || !isRegistered(kept.record, key)) return undefined;
  if (joinToken === '') return rack === '' || rack === `racks/${rackId}` ? last : undefined;
  const parts = parseJoinSecret(joinToken);
  if (parts?.rackId !== rackId) return undefined;
  const use = { rackId, secretSha256: sha256(parts.secret) };
  return hasUsed(kept.record, use, key) ? last : undefined;
}

/** One for each control plane in this process. */
const recentCertificates = new WeakMap<object, RecentCertificates<IssuedCertificate>>();

function recentOf({ identity }: AgentTrust): RecentCertificates<IssuedCertificate> {
  const recent = recentCertificates.get(identity) ?? new RecentCertificates();
  recentCertificates.set(identity, recent);
  return recent;
}

/**
 * The rack whose agent is calling, by its client certificate and the key registered now. Throws
 * `unauthenticated` without a usable certificate, `permissionDenied` when the key was replaced.
 */
export async function identifyAgent(store: StateStore, context: CallContext): Promise<RackId> {
  const certificate = context.peerCertificate();
  const rackId = certificate && rackOfUris(certificate.uris);
  if (certificate === undefined || rackId === undefined) {
    throw unauthenticated(
      'AGENT_CERTIFICATE_MISSING',
      'No agent certificate was presented. Ask EnrolmentService.IssueCertificate for one.',
    );
  }
  const kept = await readRecord(store, wire.RackRecordSchema, rackKey(rackId));
  const keySha256 = Buffer.from(certificate.publicKeySha256, 'hex');
  const why = whyNotAgent(rackId, kept?.record, keySha256);
  if (why !== undefined) throw permissionDenied(why.reason, why.message);
  return rackId;
}

async function join(
  trust: EnrolmentTrust,
  { joinToken }: CertificateRequest,
  key: AgentKey,
  plan: CertificatePlan,
  nowMs: number,
): Promise<RackId> {
  const parts = parseJoinSecret(joinToken);
  if (parts === undefined) {
    throw violation(
      'join_token',
      'is no join token; send the part behind the fingerprint, "RACK.SECRET", complete',
    );
  }
  const use: TokenUse = { rackId: parts.rackId, secretSha256: sha256(parts.secret) };
  const { store } = trust.writer;
  const named = await readRecord(store, wire.RackRecordSchema, rackKey(use.rackId));
  if (named === undefined) throw refusal(refusalOfUnknownToken(use.rackId));
  const first = decideJoin(named.record, use, key, plan, nowMs);
  if (first.kind === 'refused') throw refusal(first);
  await refuseRevoked(store, key, named.record);
  const other = await otherRackOfKey(trust, key, use.rackId);
  if (other !== undefined) throw refusal(refusalOfOtherRack(use, other));
  const next = await changeRack(trust.writer, use.rackId, (record) => {
    const decision = decideJoin(record, use, key, plan, nowMs);
    if (decision.kind === 'refused') throw refusal(decision);
    if (!isRegistered(record, key) && decision.next.rack !== undefined) {
      decision.next.rack.updateTime = timestampFromMs(nowMs);
    }
    return decision.next;
  });
  trust.rackKeys.noteWritten(use.rackId, next);
  return use.rackId;
}

async function renew(
  trust: EnrolmentTrust,
  { rack }: CertificateRequest,
  key: AgentKey,
  plan: CertificatePlan,
): Promise<RackId> {
  const named = /^racks\/([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)$/.exec(rack)?.[1];
  const { writer, rackKeys } = trust;
  const rackId = named ?? rackKeys.rackOf(hex(key.sha256));
  if (rackId === undefined) {
    await refuseRevoked(writer.store, key);
    throw refusal(refusalOfUnknownKey());
  }
  const kept = await readRecord(writer.store, wire.RackRecordSchema, rackKey(rackId));
  await refuseRevoked(writer.store, key, kept?.record);
  const change = (record: wire.RackRecord) => {
    const decision = decideRenewal(rackId, record, key, plan);
    if (decision.kind === 'refused') throw refusal(decision);
    return decision.next;
  };
  const missing = () => refusal(decideRenewal(rackId, undefined, key, plan));
  await changeRack(writer, rackId, change, missing);
  return rackId;
}

/**
 * Throws when the key was revoked or replaced, in any rack and at any time. Not while it is
 * registered: then a revocation was interrupted.
 */
async function refuseRevoked(
  store: StateStore,
  key: AgentKey,
  record?: wire.RackRecord,
): Promise<void> {
  if (record !== undefined && isRegistered(record, key)) return;
  const kept = await readRecord(store, wire.RevokedKeyRecordSchema, revokedKey(key.sha256));
  if (kept === undefined) return;
  throw refusal(refusalOfRetired(idOf(kept.record.rack), kept.record));
}

/** Before the rack's own record: so a retired key is known even after a crash. */
async function keepRevoked(
  writer: RecordWriter,
  rackId: RackId,
  before: wire.RackRecord,
  next: wire.RackRecord,
): Promise<void> {
  const retired = retiredKeyOf(before, next);
  if (retired === undefined) return;
  const schema = wire.RevokedKeyRecordSchema;
  const record = clone(schema, retired);
  record.rack = `racks/${rackId}`;
  await writeRecord(writer, schema, revokedKey(retired.keySha256), record, 'absent');
}

function revokedKey(keySha256: Uint8Array): string {
  return storeKey('revokedAgentKeys', hex(keySha256));
}

/** No certificate outlives its issuer; certificates count whole seconds. */
function lifetimeOf(issuer: Issuer, wantedMs: number, nowMs: number): number {
  const endMs = Math.min(nowMs + wantedMs, issuer.caCertificate.notAfter.getTime());
  return Math.floor(endMs / 1_000) * 1_000 - nowMs;
}

/** All violations of a request, together; then its proof of possession. */
function checkRequest(request: CertificateRequest): AgentKey {
  const violations: FieldViolation[] = [];
  const publicKey = readP256PublicKey(request.publicKey);
  if (publicKey === undefined) {
    const description = 'must be a public key on P-256, SubjectPublicKeyInfo in DER';
    violations.push({ field: 'public_key', description });
  }
  const { length } = request.nonce;
  if (length < proofNonceBytesMin || length > proofNonceBytesMax) {
    const range = `${proofNonceBytesMin} to ${proofNonceBytesMax}`;
    const description = `must have ${range} random bytes, has ${length}`;
    violations.push({ field: 'nonce', description });
  }
  if (publicKey === undefined || violations.length > 0) throw invalidArgument(violations);
  const { nonce, signature } = request;
  if (!checkCertificateProof(publicKey, request.publicKey, nonce, signature)) {
    throw violation('signature', 'must be made by the private half of public_key over the nonce');
  }
  return { publicKeyDer: request.publicKey, sha256: sha256(request.publicKey) };
}

/** Another rack whose agent has this key now. */
async function otherRackOfKey(
  { writer, rackKeys }: EnrolmentTrust,
  key: AgentKey,
  rackId: RackId,
): Promise<RackId | undefined> {
  const found = rackKeys.rackOf(hex(key.sha256));
  if (found === undefined || found === rackId) return undefined;
  const kept = await readRecord(writer.store, wire.RackRecordSchema, rackKey(found));
  return kept !== undefined && isRegistered(kept.record, key) ? found : undefined;
}

/** Revokes the rack's key. Throws `notFound`, or when there is none. */
export async function revokeAgent(
  { writer, identity }: AgentTrust,
  { rackId, by, reason, requestId }: Revocation,
): Promise<void> {
  const id = appliedId('revokeAgent', requestId);
  await changeRack(writer, rackId, (record) => {
    if (hasApplied(record, id)) return record;
    if (!isJoined(record)) {
      throw failedPrecondition(
        'NO_AGENT',
        `racks/${rackId} has no registered agent, so that there is no key to revoke. A join ` +
          'token that was lost ends by itself after 15 minutes.',
      );
    }
    const nowMs = identity.issuer.clock.nowMs();
    const next = revoke(record, by, reason, nowMs);
    next.requestIds = withApplied(next.requestIds, id);
    if (next.rack !== undefined) next.rack.updateTime = timestampFromMs(nowMs);
    return next;
  });
}

async function changeRack(
  writer: RecordWriter,
  rackId: RackId,
  change: (record: wire.RackRecord) => wire.RackRecord,
  missing: () => Error = () => notFound(`racks/${rackId}`),
): Promise<wire.RackRecord> {
  const changed = await changeRecord(writer, wire.RackRecordSchema, rackKey(rackId), change, {
    evidence: (before, next) => keepRevoked(writer, rackId, before, next),
  });
  if (changed === undefined) throw missing();
  return changed.record;
}

function refusal(decision: EnrolmentDecision): ApiFailure {
  if (decision.kind === 'issue') throw new Error('an issued certificate is no refusal');
  const { reason, message } = decision;
  return new ApiFailure({ kind: 'permissionDenied', reason, message });
}

function violation(field: string, description: string): ApiFailure {
  return invalidArgument([{ field, description }]);
}

function rackKey(rackId: RackId): string {
  return storeKey('racks', rackId);
}
