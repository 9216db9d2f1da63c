/**
 * The JSON form of an erasure certificate's statement: what fields there are, and the one way to
 * write them down. `certificate.ts` fills it, `verify.ts` checks it.
 *
 * Invariants:
 * E1 A statement claims a level only together with the verdict `erased` of a step that did not
 *    fail; any other has the level null, and a statement that says otherwise does not parse.
 * E2 A statement has exactly one form; other bytes with the same meaning are refused.
 */
import { mediaTypes, transports } from './facts.ts';
import { type ErasureLevel, type ErasureMethod, erasureLevel, erasureMethods } from './method.ts';
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
  ShapeError,
  type ShapeOf,
  sha256Text,
  text,
  textMap,
  timestamp,
} from './shape.ts';
import type { RecordedVerdict } from './wire.ts';

export const statementFormat = 'rackwright-erasure-certificate-2';
/** The standards whose terms `level` uses. */
export const erasureStandard = 'NIST SP 800-88 Rev. 2; IEEE 2883-2022';
/** A statement larger than this is neither built nor read. */
export const statementBytesMax = 512 * 1024;
/** Lines of the device's own log that a statement carries, and characters per line. */
export const deviceLogLinesMax = 64;
export const deviceLogLineCharactersMax = 512;

const nameText = text(512);
const reasonText = text(2048);
const count = nullable(integer());

const hostShape = object({
  name: nameText,
  uid: nameText,
  /** The host's own description (SMBIOS); empty when unreported. */
  manufacturer: nameText,
  product: nameText,
  serial: nameText,
  chassisSerial: nameText,
  boardSerial: nameText,
  assetTag: nameText,
});

const deviceShape = object({
  name: nameText,
  transport: oneOf(transports),
  manufacturer: nameText,
  /** Null: unknown. */
  mediaType: nullable(oneOf(mediaTypes)),
  model: nameText,
  serial: nameText,
  wwn: nameText,
  firmware: nameText,
  /** The apparent size: the addressable bytes. */
  sizeBytes: integer(),
  /** A RAID volume says nothing about the disks behind it. */
  certifiedAs: oneOf(['disk', 'volume']),
});

/** The real size, and areas beyond the addressable ones. */
const capacityShape = byKind({
  examined: object({
    kind: oneOf(['examined']),
    nativeBytes: integer(),
    /** HPA, or an accessible max address. */
    hostProtectedBytes: integer(),
    /** DCO. */
    overlayBytes: integer(),
  }),
  notExamined: object({ kind: oneOf(['notExamined']), reason: reasonText }),
});

const verdictShape = byKind({
  erased: object({
    kind: oneOf(['erased']),
    level: oneOf(['full', 'sampled']),
    placesRead: integer(1),
    bytesRead: integer(1),
    bytesExamined: integer(1),
  }),
  notErased: object({ kind: oneOf(['notErased']), reason: reasonText }),
  unverified: object({ kind: oneOf(['unverified']), reason: reasonText }),
  switchedOff: object({ kind: oneOf(['switchedOff']) }),
});

/** Shares are in millionths of a percent, confidence in hundredths of a percent. */
const verificationShape = object({
  level: oneOf(['full', 'sampled', 'none']),
  /** Blocks of 4 KiB that were drawn over the whole device; 0 at the full level. */
  places: integer(),
  /** The share of the addressable bytes that was read. */
  shareReadPpcm: integer(),
  /**
   * The smallest share that would have been found, had it been left, with `confidenceBp`; 0: any
   * byte. Null where other places than the challenge prove nothing, and where nothing was proved.
   */
  findsSharePpcm: count,
  confidenceBp: count,
});

const healthShape = nullable(
  object({
    passed: nullable(boolean),
    powerOnHours: count,
    reallocatedSectors: count,
    pendingSectors: count,
    mediaErrors: count,
    percentUsed: count,
    temperatureCelsius: nullable(integer(-273)),
  }),
);

const identityShape = byKind({
  proven: object({ kind: oneOf(['proven']), witnesses: list(text(64), 8) }),
  waived: object({ kind: oneOf(['waived']), policy: nameText }),
});

export const dispositions = ['remainsInHost', 'hostRetired', 'hostDeleted'] as const;
/** The device's destination after its erasure. */
export type Disposition = (typeof dispositions)[number];

const statementShape = object({
  format: oneOf([statementFormat]),
  host: hostShape,
  /** The site's configuration; empty: not configured. */
  report: object({ organisation: nameText, customer: nameText, technician: nameText }),
  device: deviceShape,
  capacity: capacityShape,
  method: oneOf(erasureMethods),
  methodTitle: nameText,
  /** False: proven by fixtures made from the specification only, not yet on a device. */
  methodProvenOnDevice: boolean,
  /** The category that was reached; null unless the verdict is `erased`. */
  level: nullable(oneOf(['clear', 'purge', 'metadata'])),
  standard: oneOf([erasureStandard]),
  verification: verificationShape,
  verdict: verdictShape,
  /** The verdict holds now; an addendum says whether it survives a power cycle. */
  powerCycle: oneOf(['notYetVerified']),
  /** Evidence of a step that failed proves nothing. */
  ofFailedStep: boolean,
  /** Why the device was given up. */
  loss: nullable(oneOf(['vanished', 'changed'])),
  disposition: oneOf(dispositions),
  /** Times that the method was applied, and that the device was read back. */
  rounds: integer(),
  verifyPasses: integer(),
  /** Written by the method, without the challenge; 0 when the device erased itself. */
  bytesWritten: integer(),
  hiddenBytesRemoved: integer(),
  methodMs: integer(),
  verifyMs: integer(),
  /** Bytes per second; null when it was not measured. */
  writeSpeed: count,
  readSpeed: count,
  errors: list(object({ kind: text(64), count: integer(1) }), 16),
  healthBefore: healthShape,
  healthAfter: healthShape,
  notExamined: list(reasonText, 64),
  dismantled: list(reasonText, 64),
  /** `check` only read: the erasure itself belongs to an earlier attempt. */
  mode: oneOf(['run', 'check']),
  /** The way in which guard 0 was passed: by witnesses, or by a policy that waives it. */
  identity: identityShape,
  deviceLog: list(text(deviceLogLineCharactersMax), deviceLogLinesMax),
  startedAt: timestamp,
  endedAt: timestamp,
  tools: textMap(32, 256),
  /** The program that made the statement: version and SHA-256 of its build; null when unknown. */
  software: object({ version: nameText, buildSha256: nullable(sha256Text) }),
  /** Who ordered the erasure, as the control plane knows them; empty: no person by name. */
  orderedBy: nameText,
  /** SHA-256 of the agent's key: the agent signed the runner's reading. */
  verifiedBy: object({ agentKeySha256: sha256Text, runnerVersion: nameText }),
  /** The seed in hex: from it every place can be computed again. */
  challengeSeed: matching(/^([0-9a-f]{2}){16,64}$/, '16 to 64 bytes in lower-case hex'),
  challengeBlocksWritten: integer(),
  useEpoch: integer(),
  runnerSession: nameText,
  /** The kernel's boot id of the machine on which the runner ran. */
  bootId: nameText,
  operationId: nameText,
  /** The StepEvidence that the agent signed, serialized; its signature (DER); its key (DER). */
  evidence: base64Text,
  evidenceSignature: base64Text,
  agentPublicKey: base64Text,
  /** The store that it was written to: a store restored from a copy is another one. */
  storeIncarnation: nameText,
  /** SHA-256 of the statement before this one in its chain; null for the first. */
  previousSha256: nullable(sha256Text),
});
export type ErasureStatement = ShapeOf<typeof statementShape>;

/** Writes a statement down. Throws `ShapeError` when a field does not fit the format. */
export function formatStatement(statement: ErasureStatement): Uint8Array {
  const bytes = canonicalJson(statement, statementShape);
  if (bytes.length > statementBytesMax) throw tooLarge(bytes.length);
  return bytes;
}

/** Reads a statement strictly. Throws `ShapeError`, naming the field or the byte. */
export function parseStatement(bytes: Uint8Array): ErasureStatement {
  if (bytes.length > statementBytesMax) throw tooLarge(bytes.length);
  const statement = parseJson(bytes, statementShape);
  const { method, verdict, ofFailedStep } = statement;
  const level = reachedLevel(method, verdict, ofFailedStep);
  if (statement.level !== level) {
    const failed = ofFailedStep ? ' in a step that failed' : '';
    const claim = `${method} with the verdict ${verdict.kind}${failed}`;
    throw new ShapeError('level', `${level} is what ${claim} reaches, not ${statement.level}`);
  }
  mustBeCanonical(bytes, statement, statementShape);
  return statement;
}

/** The level of a verdict: null unless it is `erased`, in a step that did not fail. */
export function reachedLevel(
  method: ErasureMethod,
  verdict: RecordedVerdict,
  ofFailedStep: boolean,
): ErasureLevel | null {
  return verdict.kind === 'erased' && !ofFailedStep ? erasureLevel(method) : null;
}

/** True only for a statement whose verdict proves that the whole device was erased. */
export function provesErasure(statement: ErasureStatement): boolean {
  return statement.level === 'clear' || statement.level === 'purge';
}

/**
 * Cuts a device's log to the size of a statement: the first lines and the last ones. `linesMax` is
 * less where many devices share one evidence.
 */
export function boundDeviceLog(
  lines: readonly string[],
  linesMax: number = deviceLogLinesMax,
): string[] {
  // A cut through a pair of surrogates would leave a text that cannot be written down.
  const cut = lines.map((line) => line.slice(0, deviceLogLineCharactersMax).toWellFormed());
  const most = Math.min(linesMax, deviceLogLinesMax);
  if (cut.length <= most) return cut;
  const head = Math.floor(most / 2);
  const tail = most - head - 1;
  const left = cut.length - head - tail;
  return [...cut.slice(0, head), `(${left} lines left out)`, ...cut.slice(cut.length - tail)];
}

function tooLarge(length: number): ShapeError {
  return new ShapeError('', `${length} bytes, at most ${statementBytesMax} allowed`);
}
