/**
 * The JSON form of an erasure certificate's statement: what fields there are, and the one way to
 * write them down. `certificate.ts` fills it, `verify.ts` checks it.
 *
 * Invariants:
 * E1 A statement claims a level only together with the verdict `erased`; any other verdict has
 *    the level null, and a statement that says otherwise does not parse.
 * E2 A statement has exactly one form; other bytes with the same meaning are refused.
 */
import { transports } from './facts.ts';
import { type ErasureLevel, type ErasureMethod, erasureLevel, erasureMethods } from './method.ts';
import {
  byKind,
  canonicalJson,
  integer,
  list,
  matching,
  nullable,
  object,
  oneOf,
  parseJson,
  ShapeError,
  type ShapeOf,
  text,
  textMap,
} from './shape.ts';
import type { RecordedVerdict } from './wire.ts';

export const statementFormat = 'rackwright-erasure-certificate-1';
/** The standard whose terms `level` uses. */
export const erasureStandard = 'NIST SP 800-88 Rev. 2';
/** A statement larger than this is neither built nor read. */
export const statementBytesMax = 192 * 1024;
/** Lines of the device's own log that a statement carries, and characters per line. */
export const deviceLogLinesMax = 64;
export const deviceLogLineCharactersMax = 512;

const nameText = text(512);
const sha256Text = matching(/^[0-9a-f]{64}$/, 'a SHA-256 in lower-case hex');
const base64Text = matching(
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  'base64',
);
const timestamp = matching(
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  'a time like 2026-01-31T12:00:00.000Z',
);

const deviceShape = object({
  name: nameText,
  transport: oneOf(transports),
  model: nameText,
  serial: nameText,
  wwn: nameText,
  firmware: nameText,
  sizeBytes: integer(),
  /** A RAID volume says nothing about the disks behind it. */
  certifiedAs: oneOf(['disk', 'volume']),
});

const verdictShape = byKind({
  erased: object({
    kind: oneOf(['erased']),
    level: oneOf(['full', 'sampled']),
    placesRead: integer(1),
    bytesRead: integer(1),
    bytesExamined: integer(1),
  }),
  notErased: object({ kind: oneOf(['notErased']), reason: text(2048) }),
  unverified: object({ kind: oneOf(['unverified']), reason: text(2048) }),
  switchedOff: object({ kind: oneOf(['switchedOff']) }),
});

const identityShape = byKind({
  proven: object({ kind: oneOf(['proven']), witnesses: list(text(64), 8) }),
  waived: object({ kind: oneOf(['waived']), policy: nameText }),
});

const statementShape = object({
  format: oneOf([statementFormat]),
  host: object({ name: nameText, uid: nameText }),
  device: deviceShape,
  method: oneOf(erasureMethods),
  /** What was reached; null unless the verdict is `erased`. */
  level: nullable(oneOf(['clear', 'purge', 'metadata'])),
  standard: oneOf([erasureStandard]),
  verdict: verdictShape,
  /** `check` only read: the erasure itself belongs to an earlier attempt. */
  mode: oneOf(['run', 'check']),
  /** How guard 0 was passed: by witnesses, or by a policy that waives it. */
  identity: identityShape,
  deviceLog: list(text(deviceLogLineCharactersMax), deviceLogLinesMax),
  startedAt: timestamp,
  endedAt: timestamp,
  tools: textMap(32, 256),
  /** The seed in hex: from it every challenge place can be computed again. */
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
  const level = reachedLevel(statement.method, statement.verdict);
  if (statement.level !== level) {
    const claim = `${statement.method} with the verdict ${statement.verdict.kind}`;
    throw new ShapeError('level', `${level} is what ${claim} reaches, not ${statement.level}`);
  }
  const different = firstDifference(bytes, canonicalJson(statement, statementShape));
  if (different !== undefined) {
    throw new ShapeError('', `not in canonical form from byte ${different} on`);
  }
  return statement;
}

/** The level of a verdict: null unless it is `erased`. */
export function reachedLevel(method: ErasureMethod, verdict: RecordedVerdict): ErasureLevel | null {
  return verdict.kind === 'erased' ? erasureLevel(method) : null;
}

/** True only for a statement whose verdict proves that the whole device was erased. */
export function provesErasure(statement: ErasureStatement): boolean {
  return statement.level === 'clear' || statement.level === 'purge';
}

/**
 * Cuts a device's log to what a statement carries: the first lines and the last ones. `linesMax`
 * is less where many devices share one evidence.
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

function firstDifference(left: Uint8Array, right: Uint8Array): number | undefined {
  const length = Math.max(left.length, right.length);
  for (let at = 0; at < length; at++) if (left[at] !== right[at]) return at;
  return undefined;
}
