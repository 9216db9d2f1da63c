/**
 * Signed documents about erasures that are no certificates: the manifest of a host's storage, the
 * addendum that proves a certificate after a power cycle, and the revocation of a certificate. The
 * exact bytes are signed, as those of certificates.
 *
 * Invariants:
 * M1 A manifest is `complete` only when no device is a gap and none is refused; one that claims
 *    otherwise does not parse.
 * M2 An addendum's statement about the reading is derived from the agent's evidence alone.
 * M3 A document has exactly one form; other bytes with the same meaning are refused.
 */
import type * as agent from '@rackwright/messages/agent';
import { parseEvidence } from './certificate.ts';
import {
  base64Text,
  boolean,
  byKind,
  canonicalJson,
  integer,
  list,
  matching,
  mustBeCanonical,
  nullable,
  object,
  oneOf,
  parseJson,
  type Shape,
  ShapeError,
  type ShapeOf,
  sha256Text,
  text,
  timestamp,
} from './shape.ts';
import { verdictOf } from './wire.ts';

export const manifestFormat = 'rackwright-erasure-manifest-1';
export const addendumFormat = 'rackwright-erasure-addendum-1';
export const revocationFormat = 'rackwright-erasure-revocation-1';
/** A document larger than this is neither built nor read. */
export const documentBytesMax = 512 * 1024;
/** Devices that one manifest names. */
export const manifestDevicesMax = 1024;

const nameText = text(512);
const reasonText = text(2048);
const hostShape = object({ name: nameText, uid: nameText });

const decisionShape = byKind({
  erased: object({
    kind: oneOf(['erased']),
    /** "erasureCertificates/ID" */
    certificate: nameText,
    certificateSha256: sha256Text,
  }),
  /** Seen, and rightly left alone. */
  listed: object({ kind: oneOf(['listed']), reason: reasonText }),
  /** Ours, and not erased. */
  refused: object({ kind: oneOf(['refused']), reason: reasonText, action: reasonText }),
  /** Seen, and not decided about. */
  gap: object({ kind: oneOf(['gap']), reason: reasonText, action: reasonText }),
});

const manifestShape = object({
  format: oneOf([manifestFormat]),
  host: hostShape,
  useEpoch: integer(),
  createdAt: timestamp,
  /** The runner session that looked. */
  runnerSession: nameText,
  complete: boolean,
  devices: list(
    object({
      /** The sources that show it. */
      sources: list(oneOf(['kernel', 'bus', 'firmware', 'bmc']), 4),
      /** The device's kind, like "disk" or "persistentMemory". */
      kind: text(64),
      name: nameText,
      model: nameText,
      serial: nameText,
      wwn: nameText,
      /** 0: unreported. */
      sizeBytes: integer(),
      decision: decisionShape,
    }),
    manifestDevicesMax,
  ),
  /** SHA-256 of the host's manifest before this one; null for the first. */
  previousSha256: nullable(sha256Text),
});
export type ErasureManifest = ShapeOf<typeof manifestShape>;

const addendumShape = object({
  format: oneOf([addendumFormat]),
  host: hostShape,
  certificate: nameText,
  certificateSha256: sha256Text,
  device: object({ model: nameText, serial: nameText, wwn: nameText }),
  placesRead: integer(1),
  bytesRead: integer(1),
  /** The seed of the erasure, whose places were read again; the certificate names the same. */
  erasedSeed: matching(/^([0-9a-f]{2}){16,64}$/, '16 to 64 bytes in lower-case hex'),
  /** The seed of the new places. */
  challengeSeed: matching(/^([0-9a-f]{2}){16,64}$/, '16 to 64 bytes in lower-case hex'),
  useEpoch: integer(),
  /** The boot that read again: another than the one that erased. */
  bootId: nameText,
  runnerSession: nameText,
  operationId: nameText,
  createdAt: timestamp,
  evidence: base64Text,
  evidenceSignature: base64Text,
  agentPublicKey: base64Text,
});
export type ErasureAddendum = ShapeOf<typeof addendumShape>;

export const revocationReasons = ['dataReturned', 'deviceChanged', 'byPerson'] as const;

const revocationShape = object({
  format: oneOf([revocationFormat]),
  host: hostShape,
  certificate: nameText,
  certificateSha256: sha256Text,
  deviceSerial: nameText,
  reason: oneOf(revocationReasons),
  /** The content that came back, or why a person revokes it. */
  detail: reasonText,
  /** Offset of the first byte that came back; null when it is not known. */
  offset: nullable(integer()),
  useEpoch: integer(),
  createdAt: timestamp,
});
export type ErasureRevocation = ShapeOf<typeof revocationShape>;

export type ErasureDocumentContent =
  | { readonly kind: 'manifest'; readonly manifest: ErasureManifest }
  | { readonly kind: 'addendum'; readonly addendum: ErasureAddendum }
  | { readonly kind: 'revocation'; readonly revocation: ErasureRevocation };

/** Writes a manifest down; `complete` follows from the devices (M1). Throws `ShapeError`. */
export function buildManifest(manifest: Omit<ErasureManifest, 'format' | 'complete'>): Uint8Array {
  const complete = isComplete(manifest.devices);
  return format({ format: manifestFormat, complete, ...manifest }, manifestShape);
}

/** The control plane's additions to the evidence of reading again. */
export interface AddendumContext {
  readonly host: { readonly name: string; readonly uid: string };
  readonly useEpoch: number;
  /** In the form of the agent's report. */
  readonly evidence: Pick<agent.Evidence, 'payload' | 'signature' | 'publicKey'>;
  readonly deviceIndex: number;
  /** Lower-case hex, of the certificate that the evidence names. */
  readonly certificateSha256: string;
  readonly createdAt: string;
}

/**
 * Builds an addendum. Throws `ShapeError` when the evidence does not prove that the device of a
 * certificate is still erased.
 */
export function buildAddendum(context: AddendumContext): Uint8Array {
  const { payload, signature, publicKey } = context.evidence;
  const evidence = parseEvidence(payload);
  if (evidence.hostUid !== context.host.uid) {
    throw new ShapeError('evidence.hostUid', `it is of ${evidence.hostUid || 'none'}`);
  }
  const outcome = evidence.devices[context.deviceIndex];
  if (outcome === undefined) throw new ShapeError('evidence.devices', 'no such device');
  const value: ErasureAddendum = {
    format: addendumFormat,
    host: { name: context.host.name, uid: context.host.uid },
    certificateSha256: context.certificateSha256,
    useEpoch: context.useEpoch,
    createdAt: context.createdAt,
    evidence: base64(payload),
    evidenceSignature: base64(signature),
    agentPublicKey: base64(publicKey),
    ...addendumFields(evidence, outcome),
  };
  return format(value, addendumShape);
}

/**
 * M2: fields that follow from the evidence. Throws `ShapeError` for evidence that proves nothing.
 */
export function addendumFields(evidence: agent.StepEvidence, outcome: agent.DeviceOutcome) {
  const verdict = verdictOf(outcome);
  if (verdict.kind !== 'erased' || evidence.ofFailedStep) {
    throw new ShapeError('evidence.verdict', 'does not prove that the device is still erased');
  }
  if (outcome.certificate === '') throw new ShapeError('evidence.certificate', 'missing');
  return {
    certificate: outcome.certificate,
    device: {
      model: outcome.device?.model ?? '',
      serial: outcome.device?.serial ?? '',
      wwn: outcome.device?.wwn ?? '',
    },
    placesRead: verdict.placesRead,
    bytesRead: verdict.bytesRead,
    erasedSeed: Buffer.from(outcome.erasedSeed).toString('hex'),
    challengeSeed: Buffer.from(outcome.challengeSeed).toString('hex'),
    bootId: evidence.bootId,
    runnerSession: evidence.runnerSession,
    operationId: evidence.operationId,
  };
}

/** Writes a revocation down. Throws `ShapeError`. */
export function buildRevocation(revocation: Omit<ErasureRevocation, 'format'>): Uint8Array {
  return format({ format: revocationFormat, ...revocation }, revocationShape);
}

const formatShape: Shape<string> = (value, path) => {
  const found =
    typeof value === 'object' && value !== null && 'format' in value ? value.format : undefined;
  if (typeof found === 'string') return found;
  throw new ShapeError(path === '' ? 'format' : `${path}.format`, 'missing');
};

const kindsByFormat: Readonly<Record<string, ErasureDocumentContent['kind']>> = {
  [manifestFormat]: 'manifest',
  [addendumFormat]: 'addendum',
  [revocationFormat]: 'revocation',
};

/** The document kind in the bytes; undefined for certificates and all else. */
export function kindOfDocument(bytes: Uint8Array): ErasureDocumentContent['kind'] | undefined {
  if (bytes.length > documentBytesMax) return undefined;
  try {
    return kindsByFormat[parseJson(bytes, formatShape)];
  } catch (error) {
    if (error instanceof ShapeError) return undefined;
    throw error;
  }
}

/** Reads any document strictly. Throws `ShapeError`, naming the field or the byte. */
export function parseDocument(bytes: Uint8Array): ErasureDocumentContent {
  if (bytes.length > documentBytesMax) throw tooLarge(bytes.length);
  const found = parseJson(bytes, formatShape);
  switch (found) {
    case manifestFormat: {
      const manifest = read(bytes, manifestShape);
      if (manifest.complete !== isComplete(manifest.devices)) {
        throw new ShapeError('complete', `is not ${manifest.complete} with these devices`);
      }
      return { kind: 'manifest', manifest };
    }
    case addendumFormat:
      return { kind: 'addendum', addendum: read(bytes, addendumShape) };
    case revocationFormat:
      return { kind: 'revocation', revocation: read(bytes, revocationShape) };
    default:
      throw new ShapeError('format', `none that is known: ${found.slice(0, 60)}`);
  }
}

function isComplete(devices: ErasureManifest['devices']): boolean {
  return devices.every(({ decision }) => decision.kind === 'erased' || decision.kind === 'listed');
}

function read<T>(bytes: Uint8Array, shape: Shape<T>): T {
  const value = parseJson(bytes, shape);
  mustBeCanonical(bytes, value, shape);
  return value;
}

function format<T>(value: T, shape: Shape<T>): Uint8Array {
  const bytes = canonicalJson(value, shape);
  if (bytes.length > documentBytesMax) throw tooLarge(bytes.length);
  return bytes;
}

function tooLarge(length: number): ShapeError {
  return new ShapeError('', `${length} bytes, at most ${documentBytesMax} allowed`);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
