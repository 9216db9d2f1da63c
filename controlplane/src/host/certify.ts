/**
 * From the agent's signed evidence to certificates, and from certificates to "every device of this
 * host is erased" (invariant H6). A device counts only with the verdict `erased`, this run, this
 * use epoch.
 */
import { create } from '@bufbuild/protobuf';
import {
  type agent,
  ErasureLevel,
  type Inventory,
  LastCleanedSchema,
  type Run,
  type RunFailure,
  type RunStep,
  store,
} from '@rackwright/api';
import {
  buildStatement,
  deviceFactsOf,
  deviceIdentity,
  parseEvidence,
  pemOfPublicKey,
  ShapeError,
  signatureFits,
  statementSha256,
  verdictOf,
} from '@rackwright/erasure';
import { eraseMetadataStep, eraseStep } from '../steps/index.ts';
import { decideDevices } from './device-plan.ts';
import { invalidResult, isErasure, stepFailure } from './step-failure.ts';
import { now, type Turn } from './turn.ts';
import type { CertificateDraft } from './types.ts';

/** Certifies every device of the plan from one step's evidence, or says why it cannot. */
export function certifyErasure(
  turn: Turn,
  _run: Run,
  step: RunStep,
  evidence: agent.Evidence | undefined,
): RunFailure | undefined {
  if (evidence === undefined) return invalidResult(`${step.name} brought no evidence`);
  const problem = signatureProblem(turn, evidence);
  if (problem !== undefined) return invalidResult(problem);
  try {
    return certifyDevices(turn, step, evidence);
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    return invalidResult(`${step.name}: ${error.message}`);
  }
}

function signatureProblem(turn: Turn, evidence: agent.Evidence): string | undefined {
  const registered = turn.context.agentPublicKey;
  if (registered === undefined) return 'the rack has no registered agent key';
  if (!Buffer.from(evidence.publicKey).equals(registered)) {
    return 'the evidence is signed by a key that is not the registered one of the rack';
  }
  const fits = signatureFits(evidence.payload, evidence.signature, pemOfPublicKey(registered));
  return fits ? undefined : 'the signature of the evidence does not fit';
}

function certifyDevices(
  turn: Turn,
  step: RunStep,
  evidence: agent.Evidence,
): RunFailure | undefined {
  const { devices } = parseEvidence(evidence.payload);
  for (const plan of turn.record.devicePlan) {
    const key = deviceKey(plan.device);
    const outcome = devices.find((candidate) => deviceKey(candidate.device) === key);
    if (outcome === undefined) return invalidResult(`the evidence says nothing of disk ${key}`);
    const verdict = verdictOf(outcome);
    if (verdict.kind !== 'erased') {
      const reason = 'reason' in verdict ? verdict.reason : 'the verdict was switched off';
      return stepFailure('notErased', `disk ${key} is not proven erased: ${reason}`);
    }
  }
  const certificates = devices.map((device, index) => draft(turn, evidence, device, index));
  turn.effects.push({ kind: 'certify', certificates });
  turn.status.lastCleaned = create(LastCleanedSchema, {
    at: now(turn),
    level: step.name === eraseStep ? ErasureLevel.FULL : ErasureLevel.METADATA_ONLY,
    certificates: certificates.map(({ id }) => `erasureCertificates/${id}`),
  });
  return undefined;
}

/** One statement; the record remembers its hash, so that the next one names it. */
function draft(
  turn: Turn,
  evidence: agent.Evidence,
  outcome: agent.DeviceOutcome,
  deviceIndex: number,
): CertificateDraft {
  const { record, host, status, spec } = turn;
  const previous = record.lastStatementSha256;
  const statement = buildStatement({
    host: { name: host.name, uid: host.uid },
    operationId: record.operation?.operation?.id ?? '',
    useEpoch: Number(status.useEpoch),
    evidence,
    deviceIndex,
    ...(previous.length === 0 ? {} : { previousSha256: Buffer.from(previous).toString('hex') }),
    ...(spec.cleaning?.allowUnprovenIdentity === true
      ? { identityWaivedBy: 'cleaning.allow_unproven_identity' }
      : {}),
  });
  record.certificateCount += 1n;
  record.lastStatementSha256 = Buffer.from(statementSha256(statement), 'hex');
  const id = `${host.uid}-${record.certificateCount}`;
  record.certified.push(
    create(store.CertifiedDeviceSchema, {
      deviceKey: deviceKey(outcome.device),
      certificate: `erasureCertificates/${id}`,
      useEpoch: status.useEpoch,
    }),
  );
  return { id, host: host.name, statement };
}

/** Whether the run has an erasure at the level of the policy; a weaker one does not count. */
export function erasesAsAsked(turn: Turn, run: Run): boolean {
  const weakEnough = turn.spec.cleaning?.level === ErasureLevel.METADATA_ONLY;
  return run.steps.some(
    (step) => step.name === eraseStep || (weakEnough && step.name === eraseMetadataStep),
  );
}

/**
 * H6: every device in scope of the inventory taken after the last erase has its certificate. An
 * automatic clean must also have erased at the level of the policy.
 */
export function checkCertified(turn: Turn, run: Run, inventory: Inventory): RunFailure | undefined {
  if (!run.manual && !erasesAsAsked(turn, run)) {
    return stepFailure(
      'notCertified',
      'the plan has no erasure at the level of the cleaning policy: correct priority_overrides',
    );
  }
  if (!run.steps.some((step) => isErasure(step.name))) return undefined;
  if (inventory.runnerSession !== turn.record.runner?.runnerSession) {
    return stepFailure('interrupted', 'the runner was replaced between erasing and looking again');
  }
  const metadataOnly = turn.status.lastCleaned?.level === ErasureLevel.METADATA_ONLY;
  for (const decision of decideDevices(inventory, metadataOnly)) {
    if (decision.kind === 'listed') continue;
    const key = deviceIdentity(decision.device);
    if (decision.kind === 'refused') {
      return stepFailure('deviceRefused', `disk ${key} cannot be erased: it ${decision.reason}`);
    }
    const certified = turn.record.certified.some(
      (device) => device.deviceKey === key && device.useEpoch === turn.status.useEpoch,
    );
    if (!certified)
      return stepFailure('notCertified', `disk ${key} has no certificate of this run`);
  }
  return undefined;
}

function deviceKey(device: agent.DevicePlan['device']): string {
  return device === undefined ? '' : deviceIdentity(deviceFactsOf(device));
}
