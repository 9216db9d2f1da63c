/**
 * Offline verification of certificates and documents: needs the statement, its signature and the
 * trusted public keys, nothing else. Describes each problem as precisely as the bytes allow.
 */
import type * as agent from '@rackwright/messages/agent';
import { parseEvidence } from './certificate.ts';
import { derivedFields, derivedHost, outcomeFor } from './derived.ts';
import {
  addendumFields,
  type ErasureAddendum,
  type ErasureDocumentContent,
  parseDocument,
} from './documents.ts';
import { ShapeError } from './shape.ts';
import { KeyError, pemOfPublicKey, sha256Hex, signatureFits } from './signature.ts';
import { type ErasureStatement, parseStatement } from './statement.ts';
import { checkTrust, type Trust } from './trusted-keys.ts';

export interface Certificate {
  /** Exact bytes of `N.json`. */
  readonly statement: Uint8Array;
  /** Exact bytes of `N.json.sig`: DER. */
  readonly signature: Uint8Array;
}

export type CertificateProblem =
  | { readonly kind: 'untrustedKey'; readonly message: string }
  | { readonly kind: 'expiredKey'; readonly message: string }
  | { readonly kind: 'signature'; readonly message: string }
  | { readonly kind: 'malformed'; readonly field: string; readonly message: string }
  | { readonly kind: 'evidenceSignature'; readonly message: string }
  | {
      readonly kind: 'fieldDiffers';
      readonly field: string;
      /** The statement's value and the agent's signed value, as JSON. */
      readonly statement: string;
      readonly evidence: string;
    };

export type CertificateCheck =
  | { readonly kind: 'valid'; readonly statement: ErasureStatement }
  | { readonly kind: 'invalid'; readonly problems: readonly CertificateProblem[] };

export type DocumentCheck =
  | { readonly kind: 'valid'; readonly content: ErasureDocumentContent }
  | { readonly kind: 'invalid'; readonly problems: readonly CertificateProblem[] };

/** Checks one certificate against the trusted public keys; never throws. */
export function verifyCertificate(certificate: Certificate, trust: Trust): CertificateCheck {
  const problems: CertificateProblem[] = [];
  let statement: ErasureStatement | undefined;
  try {
    statement = parseStatement(certificate.statement);
    problems.push(...checkEvidence(statement));
  } catch (error) {
    problems.push(malformed(error));
  }
  problems.unshift(...checkSignature(certificate, trust, statement?.endedAt));
  if (statement !== undefined && problems.length === 0) return { kind: 'valid', statement };
  return { kind: 'invalid', problems };
}

/** Checks one manifest, addendum or revocation against the trusted public keys; never throws. */
export function verifyDocument(document: Certificate, trust: Trust): DocumentCheck {
  const problems: CertificateProblem[] = [];
  let content: ErasureDocumentContent | undefined;
  try {
    content = parseDocument(document.statement);
    if (content.kind === 'addendum') problems.push(...checkAddendum(content.addendum));
  } catch (error) {
    problems.push(malformed(error));
  }
  const createdAt = content === undefined ? undefined : createdAtOf(content);
  problems.unshift(...checkSignature(document, trust, createdAt));
  if (content !== undefined && problems.length === 0) return { kind: 'valid', content };
  return { kind: 'invalid', problems };
}

/** One sentence per problem. */
export function describeProblem(problem: CertificateProblem): string {
  switch (problem.kind) {
    case 'untrustedKey':
      return `the trusted key is unusable: ${problem.message}`;
    case 'expiredKey':
    case 'signature':
    case 'evidenceSignature':
      return problem.message;
    case 'malformed':
      return `malformed: ${problem.message}`;
    case 'fieldDiffers':
      return `${problem.field} says ${problem.statement}, the agent signed ${problem.evidence}`;
  }
}

function checkSignature(
  { statement, signature }: Certificate,
  trust: Trust,
  signedAt: string | undefined,
): CertificateProblem[] {
  const check = checkTrust(statement, signature, trust, signedAt);
  switch (check.kind) {
    case 'fits':
      return [];
    case 'unusable':
      return [{ kind: 'untrustedKey', message: check.message }];
    case 'expired':
      return [{ kind: 'expiredKey', message: check.message }];
    case 'foreign':
      return [{ kind: 'signature', message: check.message }];
  }
}

type SignedEvidence = Pick<ErasureStatement, 'evidence' | 'evidenceSignature' | 'agentPublicKey'>;

function checkEvidence(statement: ErasureStatement): CertificateProblem[] {
  const payload = Buffer.from(statement.evidence, 'base64');
  return [...checkAgentSignature(statement, payload), ...compareWithEvidence(statement, payload)];
}

function checkAddendum(addendum: ErasureAddendum): CertificateProblem[] {
  const payload = Buffer.from(addendum.evidence, 'base64');
  const evidence = parseEvidence(payload);
  const { problems, compare } = comparison();
  compare('host.uid', addendum.host.uid, evidence.hostUid);
  const outcome = outcomeFor(evidence, addendum.device);
  if (outcome === undefined) compare('device.serial', addendum.device.serial, serials(evidence));
  else {
    for (const [key, value] of Object.entries(addendumFields(evidence, outcome))) {
      compare(key, valueAt(addendum, key), value);
    }
  }
  return [...checkAgentSignature(addendum, payload), ...problems];
}

function checkAgentSignature(signed: SignedEvidence, payload: Uint8Array): CertificateProblem[] {
  const signature = Buffer.from(signed.evidenceSignature, 'base64');
  try {
    const key = pemOfPublicKey(Buffer.from(signed.agentPublicKey, 'base64'));
    if (signatureFits(payload, signature, key)) return [];
  } catch (error) {
    if (!(error instanceof KeyError)) throw error;
    return [{ kind: 'malformed', field: 'agentPublicKey', message: error.message }];
  }
  const message = "the agent's signature is not over this evidence by this agent's key";
  return [{ kind: 'evidenceSignature', message }];
}

/** E3: every field that follows from the evidence must equal the evidence. */
function compareWithEvidence(
  statement: ErasureStatement,
  payload: Uint8Array,
): CertificateProblem[] {
  const evidence = parseEvidence(payload);
  const { problems, compare } = comparison();
  compare('host.uid', statement.host.uid, evidence.hostUid);
  for (const [key, value] of Object.entries(derivedHost(evidence))) {
    compare(`host.${key}`, valueAt(statement.host, key), value);
  }
  const verifiedBy = {
    agentKeySha256: sha256Hex(Buffer.from(statement.agentPublicKey, 'base64')),
    runnerVersion: evidence.runnerVersion,
  };
  compare('verifiedBy', statement.verifiedBy, verifiedBy);
  const outcome = outcomeFor(evidence, statement.device);
  if (outcome === undefined) {
    compare('device.serial', statement.device.serial, serials(evidence));
    return problems;
  }
  const derived = derivedFields(evidence, outcome);
  const { device, tools, ...rest } = derived;
  for (const [key, value] of Object.entries(device)) {
    compare(`device.${key}`, valueAt(statement.device, key), value);
  }
  for (const [key, value] of Object.entries(rest)) compare(key, valueAt(statement, key), value);
  compare('tools', sorted(statement.tools), sorted(tools));
  if (statement.identity.kind === 'proven') {
    compare('identity.witnesses', statement.identity.witnesses, evidence.identityWitnesses);
  }
  return problems;
}

function comparison() {
  const problems: CertificateProblem[] = [];
  const compare = (field: string, stated: unknown, signed: unknown) => {
    const [left, right] = [JSON.stringify(stated), JSON.stringify(signed)];
    if (left === right) return;
    problems.push({ kind: 'fieldDiffers', field, statement: left, evidence: right });
  };
  return { problems, compare };
}

function serials(evidence: agent.StepEvidence): string[] {
  return evidence.devices.map((each) => each.device?.serial ?? '');
}

function createdAtOf(content: ErasureDocumentContent): string {
  switch (content.kind) {
    case 'manifest':
      return content.manifest.createdAt;
    case 'addendum':
      return content.addendum.createdAt;
    case 'revocation':
      return content.revocation.createdAt;
  }
}

function valueAt(from: object, key: string): unknown {
  return Object.entries(from).find(([name]) => name === key)?.[1];
}

function sorted(map: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(map).sort(([left], [right]) => (left < right ? -1 : 1));
}

function malformed(error: unknown): CertificateProblem {
  if (!(error instanceof ShapeError)) throw error;
  return { kind: 'malformed', field: error.path, message: error.message };
}
