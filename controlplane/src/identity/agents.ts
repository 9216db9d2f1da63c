/**
 * Certificates and join tokens of agents: the shell around `enrolment.ts`, over the racks' records.
 *
 * Invariants:
 * 1. What a certificate vouches for is durable before the certificate is made.
 * 2. An agent counts as its rack's only with the key that is registered now: a certificate whose
 *    key was replaced is refused before it expires.
 */
import { createHash } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  type CallContext,
  checkCertificateProof,
  type FieldViolation,
  formatJoinToken,
  invalidArgument,
  joinSecretBytes,
  notFound,
  parseJoinSecret,
  permissionDenied,
  proofNonceBytesMax,
  proofNonceBytesMin,
  RackStatusSchema,
  readP256PublicKey,
  unauthenticated,
  unavailable,
  store as wire,
} from '@rackwright/api';
import type { Random } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import {
  answered,
  type Kept,
  type RecordWriter,
  readRecord,
  writeRecord,
} from '../records/index.ts';
import { issueAgentCertificate, rackOfUris } from './authority.ts';
import {
  type AgentKey,
  addJoinToken,
  decideJoin,
  type EnrolmentDecision,
  isRegistered,
  otherRack,
  type TokenUse,
  unknownKey,
} from './enrolment.ts';
import type { Identity } from './identity.ts';

/** Rounds of losing a compare-and-set on one rack's record. */
const roundsMax = 8;

export interface AgentTrust {
  readonly writer: RecordWriter & { readonly random: Random };
  readonly identity: Pick<Identity, 'issuer' | 'caSha256'>;
}

/** What an agent asks with (`IssueCertificateRequest`). */
export interface CertificateRequest {
  readonly publicKey: Uint8Array;
  readonly nonce: Uint8Array;
  readonly signature: Uint8Array;
  /** "<rack id>.<secret>", or empty for renewal by the registered key. */
  readonly joinToken: string;
}

export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly rackId: string;
  readonly expireTime: Timestamp;
}

/** Makes a join token for the rack. Throws `notFound`. */
export async function createJoinToken(
  { writer, identity }: AgentTrust,
  rackId: string,
): Promise<{ readonly token: string; readonly expireTime: Timestamp }> {
  const secret = writer.random.bytes(joinSecretBytes);
  const token = formatJoinToken(identity.caSha256, rackId, secret);
  const secretText = Buffer.from(secret).toString('base64url');
  const expireTime = await changeRack(writer, rackId, (record) => {
    const nowMs = identity.issuer.clock.nowMs();
    const added = addJoinToken(record, sha256(secretText), nowMs);
    return { next: added.next, result: added.expireTime };
  });
  return { token, expireTime };
}

/** Enrolment, renewal and return after expiry. Throws what refuses it. */
export async function issueCertificate(
  trust: AgentTrust,
  request: CertificateRequest,
): Promise<IssuedCertificate> {
  const key = checkRequest(request);
  const own = await findRackOfKey(trust.writer.store, key);
  const rackId =
    request.joinToken === '' ? allow(own, unknownKey()) : await join(trust, request, key, own);
  const { issuer } = trust.identity;
  const certificate = await issueAgentCertificate(issuer, key.publicKeyDer, rackId);
  return {
    certificatePem: `${certificate.toString('pem')}\n`,
    rackId,
    expireTime: timestampFromDate(certificate.notAfter),
  };
}

/**
 * The rack whose agent is calling, by its client certificate and the key registered now. Throws
 * `unauthenticated` without a usable certificate, `permissionDenied` when the key was replaced.
 */
export async function identifyAgent(store: StateStore, context: CallContext): Promise<string> {
  const certificate = context.peerCertificate();
  const rackId = certificate && rackOfUris(certificate.uris);
  if (certificate === undefined || rackId === undefined) {
    throw unauthenticated(
      'AGENT_CERTIFICATE_MISSING',
      'No agent certificate was presented. Ask EnrolmentService.IssueCertificate for one.',
    );
  }
  const kept = await readRecord(store, wire.RackRecordSchema, rackKey(rackId));
  if (kept === undefined) {
    throw permissionDenied('RACK_UNKNOWN', `racks/${rackId} does not exist (any more).`);
  }
  const registered = createHash('sha256').update(kept.record.agentPublicKey).digest('hex');
  if (registered === certificate.publicKeySha256) return rackId;
  throw permissionDenied(
    'AGENT_KEY_REPLACED',
    `Another agent is registered with racks/${rackId}. If this is the right one, give it a new ` +
      `join token: rackwright rack join-token ${rackId}`,
  );
}

async function join(
  trust: AgentTrust,
  { joinToken }: CertificateRequest,
  key: AgentKey,
  own: string | undefined,
): Promise<string> {
  const parts = parseJoinSecret(joinToken);
  if (parts === undefined) {
    throw violation(
      'join_token',
      'is no join token; send the part behind the fingerprint, "RACK.SECRET", complete',
    );
  }
  const use: TokenUse = { rackId: parts.rackId, secretSha256: sha256(parts.secret) };
  if (own !== undefined && own !== use.rackId) return allow(undefined, otherRack(use, own));
  const nowMs = trust.identity.issuer.clock.nowMs();
  await changeRack(trust.writer, use.rackId, (record) => {
    const decision = decideJoin(record, use, key, nowMs);
    if (decision.kind === 'refused') throw refusal(decision);
    if (decision.next === undefined) return { result: undefined };
    const { rack } = decision.next;
    if (rack !== undefined) {
      rack.updateTime = timestampFromMs(nowMs);
      rack.status ??= create(RackStatusSchema);
      rack.status.agentKeySha256 = Buffer.from(key.sha256).toString('hex');
    }
    return { next: decision.next, result: undefined };
  });
  return use.rackId;
}

/** All that is wrong with a request, together; then its proof. */
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

async function findRackOfKey(store: StateStore, key: AgentKey): Promise<string | undefined> {
  const { entries } = await answered(store.list('racks'));
  const found = entries
    .map(({ value }) => fromBinary(wire.RackRecordSchema, value))
    .find((record) => isRegistered(record, key));
  return found?.rack?.name.replace(/^racks\//, '');
}

async function changeRack<T>(
  writer: RecordWriter,
  rackId: string,
  change: (record: wire.RackRecord) => { readonly next?: wire.RackRecord; readonly result: T },
): Promise<T> {
  const key = rackKey(rackId);
  for (let round = 0; round < roundsMax; round += 1) {
    const kept: Kept<wire.RackRecord> | undefined = await readRecord(
      writer.store,
      wire.RackRecordSchema,
      key,
    );
    if (kept === undefined) throw notFound(`racks/${rackId}`);
    const { next, result } = change(kept.record);
    if (next === undefined) return result;
    const written = await writeRecord(writer, wire.RackRecordSchema, key, next, kept.revision);
    if (written.kind === 'ok') return result;
  }
  throw unavailable('RACK_CONTENDED', `racks/${rackId} is being changed by others; try again.`);
}

function allow(rackId: string | undefined, otherwise: EnrolmentDecision): string {
  if (rackId !== undefined) return rackId;
  throw refusal(otherwise);
}

function refusal(decision: EnrolmentDecision): ApiFailure {
  if (decision.kind === 'issue') throw new Error('an issued certificate is no refusal');
  const { reason, message } = decision;
  return new ApiFailure({ kind: 'permissionDenied', reason, message });
}

function violation(field: string, description: string): ApiFailure {
  return invalidArgument([{ field, description }]);
}

function rackKey(rackId: string): string {
  return storeKey('racks', rackId);
}

function sha256(bytes: Uint8Array | string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(bytes).digest());
}
