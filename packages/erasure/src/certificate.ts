/**
 * Building an erasure certificate from what an agent signed: a JSON statement about one device,
 * to be signed over its exact bytes.
 *
 *     openssl dgst -sha256 -verify trust.pem -signature N.json.sig N.json
 *
 * Invariant E3: what a statement says about the erasure is derived from the evidence alone, by
 * `derivedFields`; building and verifying use the same function.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { agent } from '@rackwright/api';
import { deviceIdentity } from './facts.ts';
import { ShapeError } from './shape.ts';
import { sha256Hex } from './signature.ts';
import {
  boundDeviceLog,
  type ErasureStatement,
  erasureStandard,
  formatStatement,
  reachedLevel,
  statementFormat,
} from './statement.ts';
import { deviceFactsOf, methodOf, verdictOf } from './wire.ts';

/** What the control plane adds to an agent's signed evidence. */
export interface StatementContext {
  readonly host: { readonly name: string; readonly uid: string };
  readonly operationId: string;
  readonly useEpoch: number;
  /** As the agent reported it. */
  readonly evidence: Pick<agent.Evidence, 'payload' | 'signature' | 'publicKey'>;
  /** Which of the evidence's devices the statement is about, from 0. */
  readonly deviceIndex: number;
  /** The policy by which an unproven identity was accepted; unset when guard 0 was passed. */
  readonly identityWaivedBy?: string;
  /** Lower-case hex; unset for the first statement of a chain. */
  readonly previousSha256?: string;
}

type DerivedField =
  | 'device'
  | 'method'
  | 'level'
  | 'verdict'
  | 'mode'
  | 'deviceLog'
  | 'startedAt'
  | 'endedAt'
  | 'tools'
  | 'challengeSeed'
  | 'challengeBlocksWritten'
  | 'runnerSession'
  | 'bootId'
  | 'operationId';

/**
 * Builds the exact bytes of a statement. Throws `ShapeError` when the evidence does not hold what
 * a statement needs, or belongs to another host or operation.
 */
export function buildStatement(context: StatementContext): Uint8Array {
  const evidence = parseEvidence(context.evidence.payload);
  mustEqual('operationId', evidence.operationId, context.operationId);
  mustEqual('hostUid', evidence.hostUid, context.host.uid);
  const outcome = evidence.devices[context.deviceIndex];
  if (outcome === undefined) {
    const count = evidence.devices.length;
    throw new ShapeError('evidence.devices', `no device ${context.deviceIndex} of ${count}`);
  }
  return formatStatement({
    format: statementFormat,
    host: { name: context.host.name, uid: context.host.uid },
    standard: erasureStandard,
    identity: identityOf(evidence, context.identityWaivedBy),
    useEpoch: context.useEpoch,
    evidence: base64(context.evidence.payload),
    evidenceSignature: base64(context.evidence.signature),
    agentPublicKey: base64(context.evidence.publicKey),
    previousSha256: context.previousSha256 ?? null,
    ...derivedFields(evidence, outcome),
  });
}

/** Reads the bytes that an agent signed. Throws `ShapeError` when they are no StepEvidence. */
export function parseEvidence(payload: Uint8Array): agent.StepEvidence {
  try {
    return fromBinary(agent.StepEvidenceSchema, payload);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ShapeError('evidence', `no StepEvidence message: ${why}`);
  }
}

/** The SHA-256 that the next statement of a chain names. */
export function statementSha256(statement: Uint8Array): string {
  return sha256Hex(statement);
}

/** The outcome that a statement is about, found by the device's identity. */
export function outcomeFor(
  evidence: agent.StepEvidence,
  device: ErasureStatement['device'],
): agent.DeviceOutcome | undefined {
  return evidence.devices.find((outcome) => {
    const facts = outcome.device;
    return facts !== undefined && deviceIdentity(facts) === deviceIdentity(device);
  });
}

/** What follows from the evidence. Throws `ShapeError` for what evidence must not leave out. */
export function derivedFields(
  evidence: agent.StepEvidence,
  outcome: agent.DeviceOutcome,
): Pick<ErasureStatement, DerivedField> {
  if (outcome.device === undefined) throw new ShapeError('evidence.device', 'missing');
  const facts = deviceFactsOf(outcome.device);
  const method = methodOf(outcome.method);
  if (method === undefined) throw new ShapeError('evidence.method', 'missing or unknown');
  const verdict = verdictOf(outcome);
  return {
    device: {
      name: facts.name,
      transport: facts.transport,
      model: facts.model,
      serial: facts.serial,
      wwn: facts.wwn,
      firmware: facts.firmware,
      sizeBytes: facts.sizeBytes,
      certifiedAs: facts.raidVolume ? 'volume' : 'disk',
    },
    method,
    level: reachedLevel(method, verdict),
    verdict,
    mode: modeOf(evidence.mode),
    deviceLog: boundDeviceLog(outcome.log),
    startedAt: isoTime('startTime', outcome.startTime),
    endedAt: isoTime('endTime', outcome.endTime),
    tools: { ...evidence.toolVersions, runner: evidence.runnerVersion },
    challengeSeed: Buffer.from(outcome.challengeSeed).toString('hex'),
    challengeBlocksWritten: Number(outcome.challengeBlocksWritten),
    runnerSession: evidence.runnerSession,
    bootId: evidence.bootId,
    operationId: evidence.operationId,
  };
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

function modeOf(mode: agent.StepMode): 'run' | 'check' {
  if (mode === agent.StepMode.RUN) return 'run';
  if (mode === agent.StepMode.CHECK) return 'check';
  throw new ShapeError('evidence.mode', 'missing or unknown');
}

function isoTime(field: string, time: agent.DeviceOutcome['startTime']): string {
  if (time === undefined) throw new ShapeError(`evidence.${field}`, 'missing');
  return timestampDate(time).toISOString();
}

function mustEqual(field: string, found: string, wanted: string): void {
  if (found === wanted) return;
  throw new ShapeError(`evidence.${field}`, `it is of ${found || 'none'}, not of ${wanted}`);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
