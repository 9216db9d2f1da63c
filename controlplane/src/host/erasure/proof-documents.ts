/**
 * The results of a second reading after a power cycle, as signed documents: an addendum to each
 * certificate that is still valid, and a revocation of each that is not. Their content follows only
 * from the evidence, so that two replicas write the same.
 */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  buildAddendum,
  buildRevocation,
  deviceIdentity,
  parseEvidence,
  ShapeError,
} from '@rackwright/erasure';
import { agent, ErasureDocumentKind, type store } from '@rackwright/messages';
import type { PassView } from '../pass/pass.ts';
import type { DocumentDraft } from '../pass/types.ts';
import { signatureProblem } from './evidence.ts';

/** One addendum for each proved device. Throws `ShapeError`. */
export function addenda(
  pass: PassView,
  evidence: agent.Evidence,
  { devices }: agent.StepEvidence,
): DocumentDraft[] {
  return devices.map((outcome, deviceIndex) => {
    const unproved = unprovedOf(pass, outcome);
    const statement = buildAddendum({
      ...{ host: pass.host, useEpoch: Number(unproved.useEpoch), evidence, deviceIndex },
      certificateSha256: hex(unproved.statementSha256),
      createdAt: timeOf(outcome),
    });
    return draft(pass, unproved, ErasureDocumentKind.ADDENDUM, statement);
  });
}

/** One revocation for each device with data left, by trusted evidence. */
export function revocations(pass: PassView, evidence: agent.Evidence | undefined): DocumentDraft[] {
  if (evidence === undefined || signatureProblem(pass, evidence) !== undefined) return [];
  try {
    const parsed = parseEvidence(evidence.payload);
    const isOurs = parsed.operationId === pass.record.operation?.operation?.id;
    return isOurs ? parsed.devices.flatMap((outcome) => revocationOf(pass, outcome)) : [];
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    return [];
  }
}

function revocationOf(pass: PassView, outcome: agent.DeviceOutcome): DocumentDraft[] {
  const isNamed = pass.record.unproved.some(
    ({ plan }) => plan?.certificate === outcome.certificate && isOf(plan, outcome),
  );
  if (outcome.verdict !== agent.VerdictKind.NOT_ERASED || !isNamed) return [];
  const unproved = unprovedOf(pass, outcome);
  const { name, uid } = pass.host;
  const statement = buildRevocation({
    host: { name, uid },
    certificate: outcome.certificate,
    certificateSha256: hex(unproved.statementSha256),
    deviceSerial: outcome.device?.serial ?? '',
    reason: 'dataReturned',
    detail: outcome.verdictReason.slice(0, detailMax),
    offset: null,
    useEpoch: Number(unproved.useEpoch),
    createdAt: timeOf(outcome),
  });
  return [draft(pass, unproved, ErasureDocumentKind.REVOCATION, statement)];
}

/** The most characters of a reason in a document. */
const detailMax = 2_048;

const suffixes = {
  [ErasureDocumentKind.ADDENDUM]: 'addendum',
  [ErasureDocumentKind.REVOCATION]: 'revocation',
} as const;

function draft(
  { host }: PassView,
  { plan, useEpoch }: store.UnprovedDevice,
  kind: keyof typeof suffixes,
  statement: Uint8Array,
): DocumentDraft {
  const certificate = plan?.certificate ?? '';
  const id = `${certificate.replace(/^erasureCertificates\//, '')}-${suffixes[kind]}`;
  const about = { host: host.name, hostUid: host.uid, certificates: [certificate], useEpoch };
  return { id, kind, ...about, statement };
}

function unprovedOf({ record }: PassView, outcome: agent.DeviceOutcome) {
  const found = record.unproved.find(({ plan }) => plan !== undefined && isOf(plan, outcome));
  if (found === undefined) throw new ShapeError('evidence.devices', 'a device out of the order');
  return found;
}

function isOf({ device }: agent.DevicePlan, outcome: agent.DeviceOutcome): boolean {
  if (device === undefined || outcome.device === undefined) return false;
  return deviceIdentity(device) === deviceIdentity(outcome.device);
}

/** By the runner's clock: the same on every replica and at every time. */
function timeOf({ endTime }: agent.DeviceOutcome): string {
  if (endTime === undefined) throw new ShapeError('evidence.endTime', 'missing');
  return timestampDate(endTime).toISOString();
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
