/**
 * A certificate's statements about an erasure, derived from the evidence that the agent signed and
 * from nothing else (E3). Building and verifying use the same function.
 */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import * as agent from '@rackwright/messages/agent';
import { type DeviceFacts, deviceIdentity } from './facts.ts';
import { type ErasureMethod, leavesContent, methodFacts } from './method.ts';
import { ShapeError } from './shape.ts';
import { boundDeviceLog, type ErasureStatement, reachedLevel } from './statement.ts';
import { shareFound } from './verification.ts';
import { verificationOf } from './verification-wire.ts';
import { deviceFactsOf, methodOf, type RecordedVerdict, verdictOf } from './wire.ts';

/**
 * Certificates state the share that was examined with this confidence, in hundredths of a percent.
 */
export const certificateConfidenceBp = 9900;
const ppcmPerShare = 100_000_000;

type GivenField =
  | 'format'
  | 'standard'
  | 'report'
  | 'identity'
  | 'disposition'
  | 'powerCycle'
  | 'software'
  | 'orderedBy'
  | 'verifiedBy'
  | 'useEpoch'
  | 'evidence'
  | 'evidenceSignature'
  | 'agentPublicKey'
  | 'storeIncarnation'
  | 'previousSha256'
  | 'host';
export type DerivedFields = Omit<ErasureStatement, GivenField>;

/**
 * Fields that follow from the evidence. Throws `ShapeError` when the evidence lacks a required
 * part.
 */
export function derivedFields(
  evidence: agent.StepEvidence,
  outcome: agent.DeviceOutcome,
): DerivedFields {
  const method = methodOf(outcome.method);
  if (method === undefined) throw new ShapeError('evidence.method', 'missing or unknown');
  const { ofFailedStep } = evidence;
  const verdict = verdictOf(outcome);
  const { title, provenOnDevice } = methodFacts[method];
  return {
    ...deviceFields(outcome),
    method,
    methodTitle: title,
    methodProvenOnDevice: provenOnDevice,
    level: reachedLevel(method, verdict, ofFailedStep),
    verification: verificationFields(outcome, method, verdict),
    verdict,
    ofFailedStep,
    loss: lossOf(outcome.loss),
    ...workFields(outcome, verdict),
    healthBefore: healthFields(outcome.healthBefore),
    healthAfter: healthFields(outcome.healthAfter),
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

/** The host's own facts in the evidence. */
export function derivedHost(
  evidence: agent.StepEvidence,
): Omit<ErasureStatement['host'], 'name' | 'uid'> {
  const { system } = evidence;
  return {
    manufacturer: system?.manufacturer ?? '',
    product: system?.product ?? '',
    serial: system?.serial ?? '',
    chassisSerial: system?.chassisSerial ?? '',
    boardSerial: system?.boardSerial ?? '',
    assetTag: system?.assetTag ?? '',
  };
}

/** The outcome that a statement is about, found by the device's identity. */
export function outcomeFor(
  evidence: agent.StepEvidence,
  device: Pick<ErasureStatement['device'], 'serial' | 'wwn'>,
): agent.DeviceOutcome | undefined {
  return evidence.devices.find((outcome) => {
    const facts = outcome.device;
    return facts !== undefined && deviceIdentity(facts) === deviceIdentity(device);
  });
}

function deviceFields(outcome: agent.DeviceOutcome): Pick<DerivedFields, 'device' | 'capacity'> {
  if (outcome.device === undefined) throw new ShapeError('evidence.device', 'missing');
  const facts = deviceFactsOf(outcome.device);
  return {
    device: {
      name: facts.name,
      transport: facts.transport,
      manufacturer: facts.manufacturer ?? '',
      mediaType: facts.mediaType ?? null,
      model: facts.model,
      serial: facts.serial,
      wwn: facts.wwn,
      firmware: facts.firmware,
      sizeBytes: facts.sizeBytes,
      certifiedAs: facts.raidVolume ? 'volume' : 'disk',
    },
    capacity: capacityFields(facts.capacity),
  };
}

function capacityFields(capacity: DeviceFacts['capacity']): ErasureStatement['capacity'] {
  if (capacity === undefined) return { kind: 'notExamined', reason: 'the device was not asked' };
  if (capacity.kind === 'notExamined') return capacity;
  const { overlayUnknown: _, ...known } = capacity;
  return known;
}

/** The parts that the runner did not examine, and an overlay of unknown content. */
function notExaminedFields({ device, notExamined }: agent.DeviceOutcome): readonly string[] {
  const capacity = device === undefined ? undefined : deviceFactsOf(device).capacity;
  const overlay = capacity?.kind === 'examined' ? capacity.overlayUnknown : undefined;
  return boundDeviceLog(overlay === undefined ? notExamined : [overlay, ...notExamined]);
}

function verificationFields(
  outcome: agent.DeviceOutcome,
  method: ErasureMethod,
  verdict: RecordedVerdict,
): ErasureStatement['verification'] {
  const done = verificationOf(outcome.verification);
  if (verdict.kind !== 'erased' || done === undefined) {
    const nothing = { findsSharePpcm: null, confidenceBp: null };
    return { level: 'none', places: 0, shareReadPpcm: 0, ...nothing };
  }
  const share = Math.min(1, verdict.bytesRead / verdict.bytesExamined);
  const read = { shareReadPpcm: Math.floor(share * ppcmPerShare) };
  const places = done.level === 'sampled' ? done.places : 0;
  if (leavesContent(method) || method === 'metadataOnly') {
    return { level: done.level, places, ...read, findsSharePpcm: null, confidenceBp: null };
  }
  if (done.level === 'full') {
    return { level: 'full', places, ...read, findsSharePpcm: 0, confidenceBp: 10_000 };
  }
  const finds = Math.ceil(shareFound(places, certificateConfidenceBp / 10_000) * ppcmPerShare);
  const confidenceBp = certificateConfidenceBp;
  return { level: 'sampled', places, ...read, findsSharePpcm: finds, confidenceBp };
}

type WorkField =
  | 'rounds'
  | 'verifyPasses'
  | 'bytesWritten'
  | 'hiddenBytesRemoved'
  | 'methodMs'
  | 'verifyMs'
  | 'writeSpeed'
  | 'readSpeed'
  | 'errors'
  | 'notExamined'
  | 'dismantled';

function workFields(
  outcome: agent.DeviceOutcome,
  verdict: RecordedVerdict,
): Pick<DerivedFields, WorkField> {
  const methodMs = Number(outcome.methodMs);
  const verifyMs = Number(outcome.verifyMs);
  const bytesWritten = Number(outcome.bytesWritten);
  const isRead = verdict.kind === 'erased';
  const allRead = isRead ? Math.max(verdict.bytesRead, Number(outcome.bytesOfReadings)) : 0;
  const errors = Object.entries(outcome.errors)
    .filter(([, count]) => count > 0n)
    .sort(([left], [right]) => (left < right ? -1 : 1));
  return {
    rounds: isRead ? 1 : 0,
    // A verdict of erased needs at least one reading.
    verifyPasses: isRead ? Math.max(1, outcome.readings) : 0,
    bytesWritten,
    hiddenBytesRemoved: Number(outcome.hiddenBytesRemoved),
    methodMs,
    verifyMs,
    writeSpeed: speed(bytesWritten, methodMs),
    readSpeed: speed(allRead, verifyMs),
    errors: errors.map(([kind, count]) => ({ kind, count: Number(count) })),
    notExamined: notExaminedFields(outcome),
    dismantled: boundDeviceLog(outcome.dismantled),
  };
}

function speed(bytes: number, milliseconds: number): number | null {
  return bytes === 0 || milliseconds === 0 ? null : Math.round((bytes * 1000) / milliseconds);
}

function healthFields(
  health: agent.DeviceOutcome['healthBefore'],
): ErasureStatement['healthBefore'] {
  if (health === undefined) return null;
  const counter = (value: bigint | undefined) => (value === undefined ? null : Number(value));
  return {
    passed: health.passed ?? null,
    powerOnHours: counter(health.powerOnHours),
    reallocatedSectors: counter(health.reallocatedSectors),
    pendingSectors: counter(health.pendingSectors),
    mediaErrors: counter(health.mediaErrors),
    percentUsed: health.percentUsed ?? null,
    temperatureCelsius: health.temperatureCelsius ?? null,
  };
}

function lossOf(loss: agent.DeviceLoss): ErasureStatement['loss'] {
  switch (loss) {
    case agent.DeviceLoss.UNSPECIFIED:
      return null;
    case agent.DeviceLoss.VANISHED:
      return 'vanished';
    case agent.DeviceLoss.CHANGED:
      return 'changed';
    default:
      throw new ShapeError('evidence.loss', 'unknown');
  }
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
