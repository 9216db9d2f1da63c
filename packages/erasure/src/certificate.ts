/**
 * Building an erasure certificate from an agent's signed evidence: a JSON statement about one
 * device, to be signed over its exact bytes.
 *
 *     openssl dgst -sha256 -verify trust.pem -signature N.json.sig N.json
 *
 * Invariant E3: the fields of a statement about the erasure and about the host's own serials are
 * derived from the evidence alone, by `derivedFields` and `derivedHost`.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type Incarnation, type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { derivedFields, derivedHost } from './derived.ts';
import { ShapeError } from './shape.ts';
import { sha256Hex } from './signature.ts';
import {
  type Disposition,
  type ErasureStatement,
  erasureStandard,
  formatStatement,
  statementFormat,
} from './statement.ts';

/** The control plane's additions to an agent's signed evidence. */
export interface StatementContext {
  readonly host: { readonly name: string; readonly uid: string };
  readonly operationId: OperationId;
  readonly useEpoch: number;
  /** In the form of the agent's report. */
  readonly evidence: Pick<agent.Evidence, 'payload' | 'signature' | 'publicKey'>;
  /** Which of the evidence's devices the statement is about, from 0. */
  readonly deviceIndex: number;
  /** The policy by which an unproven identity was accepted; unset when guard 0 was passed. */
  readonly identityWaivedBy?: string;
  /** The store that keeps the statement. */
  readonly storeIncarnation?: Incarnation;
  /** Lower-case hex; unset for the first statement of a chain. */
  readonly previousSha256?: string;
  /** `fleet.erasure_report`. */
  readonly report?: Partial<ErasureStatement['report']>;
  /** Unset: the device remains in the host. */
  readonly disposition?: Disposition;
  /** Who ordered the erasure: "user:NAME", or the part of Rackwright that did. */
  readonly orderedBy?: string;
  readonly software?: { readonly version: string; readonly buildSha256?: string };
}

/**
 * Builds the exact bytes of a statement. Throws `ShapeError` when the evidence lacks a required
 * part, or belongs to another host or operation.
 */
export function buildStatement(context: StatementContext): Uint8Array {
  const { payload, signature, publicKey } = context.evidence;
  const evidence = parseEvidence(payload);
  mustEqual('operationId', evidence.operationId, context.operationId);
  mustEqual('hostUid', evidence.hostUid, context.host.uid);
  const outcome = evidence.devices[context.deviceIndex];
  if (outcome === undefined) {
    const count = evidence.devices.length;
    throw new ShapeError('evidence.devices', `no device ${context.deviceIndex} of ${count}`);
  }
  const { version, buildSha256 } = context.software ?? { version: '' };
  return formatStatement({
    format: statementFormat,
    host: { name: context.host.name, uid: context.host.uid, ...derivedHost(evidence) },
    report: { organisation: '', customer: '', technician: '', ...context.report },
    standard: erasureStandard,
    powerCycle: 'notYetVerified',
    disposition: context.disposition ?? 'remainsInHost',
    software: { version, buildSha256: buildSha256 ?? null },
    orderedBy: context.orderedBy ?? '',
    verifiedBy: {
      agentKeySha256: sha256Hex(publicKey),
      runnerVersion: evidence.runnerVersion,
    },
    identity: identityOf(evidence, context.identityWaivedBy),
    useEpoch: context.useEpoch,
    evidence: base64(payload),
    evidenceSignature: base64(signature),
    agentPublicKey: base64(publicKey),
    storeIncarnation: context.storeIncarnation ?? '',
    previousSha256: context.previousSha256 ?? null,
    ...derivedFields(evidence, outcome),
  });
}

/** Reads the bytes that an agent signed. Throws `ShapeError` when they are no StepEvidence. */
export function parseEvidence(payload: Uint8Array): agent.StepEvidence {
  try {
    return fromBinary(agent.StepEvidenceSchema, payload);
  } catch (cause) {
    throw new ShapeError('evidence', 'no StepEvidence message', { cause });
  }
}

/** The SHA-256 that the next statement of a chain names. */
export function statementSha256(statement: Uint8Array): string {
  return sha256Hex(statement);
}

/** A statement whose evidence is kept apart, so that the devices of one step share it. */
export interface SeparatedStatement {
  /** The statement's bytes, with the evidence's SHA-256 in its place. */
  readonly rest: Uint8Array;
  /** The evidence's payload, and its SHA-256 in lower-case hex. */
  readonly evidence: Uint8Array;
  readonly evidenceSha256: string;
}

// In canonical form each field has a line of its own, and no text holds a raw line feed.
const evidenceLine = /^ {2}"evidence": "([A-Za-z0-9+/=]*)",$/m;
const referenceLine = /^ {2}"evidence": "sha256:([0-9a-f]{64})",$/m;

/** Takes the evidence out of a statement, to be stored once. Throws `ShapeError`. */
export function separateEvidence(statement: Uint8Array): SeparatedStatement {
  const json = Buffer.from(statement).toString();
  const encoded = evidenceLine.exec(json)?.[1];
  if (encoded === undefined) throw new ShapeError('evidence', 'missing');
  const evidence = Buffer.from(encoded, 'base64');
  const evidenceSha256 = sha256Hex(evidence);
  const line = `  "evidence": "sha256:${evidenceSha256}",`;
  const rest = Buffer.from(json.replace(evidenceLine, () => line));
  return { rest, evidence, evidenceSha256 };
}

/** The digest of the evidence that was taken out; undefined for a whole statement. */
export function separatedEvidenceSha256(rest: Uint8Array): string | undefined {
  return referenceLine.exec(Buffer.from(rest).toString())?.[1];
}

/** The exact bytes that were signed. Throws `ShapeError` when this is not its evidence. */
export function joinEvidence(rest: Uint8Array, evidence: Uint8Array): Uint8Array {
  const wanted = separatedEvidenceSha256(rest);
  if (wanted === undefined || wanted !== sha256Hex(evidence)) {
    throw new ShapeError('evidence', `${wanted ?? 'none'} is named, not these bytes`);
  }
  const line = `  "evidence": "${base64(evidence)}",`;
  return Buffer.from(
    Buffer.from(rest)
      .toString()
      .replace(referenceLine, () => line),
  );
}

function identityOf(
  evidence: agent.StepEvidence,
  waivedBy: string | undefined,
): ErasureStatement['identity'] {
  const witnesses = evidence.identityWitnesses;
  if (witnesses.length > 0) return { kind: 'proven', witnesses };
  if (waivedBy !== undefined) return { kind: 'waived', policy: waivedBy };
  throw new ShapeError('evidence.identityWitnesses', 'none, and no policy waives guard 0');
}

function mustEqual(field: string, found: string, wanted: string): void {
  if (found === wanted) return;
  throw new ShapeError(`evidence.${field}`, `it is of ${found || 'none'}, not of ${wanted}`);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
