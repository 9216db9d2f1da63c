/**
 * Disks prove their erasure again after a power cycle. The first boot of the runner after an
 * erasure reads the same locations again, and new ones, before anything is written or used (DESIGN
 * §5).
 *
 * Invariants:
 * P1 A device is read again only while nothing can have written to it: in the use epoch of its
 *    certificate. After that its certificate stays unproved forever.
 * P2 Only evidence from another boot than the erasing one proves anything.
 * P3 Without success the run writes nothing; and if the failure concerns the disks, an available
 *    host loses that state.
 */
import { create } from '@bufbuild/protobuf';
import {
  deviceFactsOf,
  deviceIdentity,
  methodOf,
  orderedVerification,
  planRereading,
  verificationToWire,
} from '@rackwright/erasure';
import {
  agent,
  type BootId,
  HostState,
  hasFault,
  PowerCycleCheck,
  type RunFailure,
  StepState,
  store,
  verifyErasedStep,
  WriteCache,
} from '@rackwright/messages';
import { policyOfFailure } from '../pass/failure-policy.ts';
import { clearFault, setFault } from '../pass/fault.ts';
import { identitiesNow, inventoryNow, type Pass, type PassView } from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { invalidResult, stepFailure } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';
import { move } from '../pass/transitions.ts';
import { orderAgeOf, whyUntrue, withEvidence } from './evidence.ts';
import { verificationPolicy } from './policy.ts';
import { addenda, revocations } from './proof-documents.ts';
import { noteSpeeds } from './speeds.ts';

/** Erased data has returned: the name of the fault, and of the run's failure. */
export const contentReturned = 'dataReturned';

/** Whether the present or last runner can read again. */
export function canReadAgain({ record, snapshot }: PassView): boolean {
  const steps = record.runner?.steps ?? [];
  const known = steps.length > 0 ? steps : snapshot.facts.runnerSteps;
  return known.some(({ name }) => name === verifyErasedStep);
}

/**
 * Records what has just been erased, for another reading after a power cycle. A runner without that
 * ability erases nothing that could be proved later (R8): its certificates stay as they are.
 */
export function noteUnproved(pass: Pass, unproved: readonly store.UnprovedDevice[]): void {
  const { record, status } = pass;
  if (!canReadAgain(pass)) return;
  if (!isRereadingDue(pass)) record.unproved = [];
  // Of two erasures of one device, the one that covered all of it is read again.
  const weak = ({ plan }: store.UnprovedDevice) =>
    plan?.method === agent.ErasureMethod.METADATA_ONLY;
  for (const each of unproved) {
    const at = record.unproved.findIndex((other) => keyOf(other.plan) === keyOf(each.plan));
    const before = record.unproved[at];
    if (before === undefined) record.unproved.push(each);
    else if (weak(before) || !weak(each)) record.unproved[at] = each;
  }
  record.unprovedEpoch = status.useEpoch;
}

/** P1: whether the next boot of the runner has to read something again. */
export function isRereadingDue({ record, status }: Pick<PassView, 'record' | 'status'>): boolean {
  return record.unproved.length > 0 && record.unprovedEpoch === status.useEpoch;
}

/**
 * Whether a host that goes out of use is read again first: no later boot would do that. A policy
 * may leave it to the next boot.
 */
export function isToBeProvedBeforeItGoes({
  record,
  status,
  spec,
}: Pick<PassView, 'record' | 'status' | 'spec'>): boolean {
  const check = spec.cleaning?.powerCycleCheck ?? PowerCycleCheck.UNSPECIFIED;
  const isOthers =
    status.state === HostState.EXTERNAL || record.adoptTo === HostState.EXTERNAL || status.dirty;
  return check !== PowerCycleCheck.NEXT_BOOT && !isOthers && isRereadingDue({ record, status });
}

/** P1: devices that were in use since are not read again. */
export function dropUsed(pass: Pass): void {
  if (!isRereadingDue(pass)) pass.record.unproved = [];
}

/** P1: whether something was to be read again, and may have been written to before that. */
export function isUsedSince(pass: Pick<PassView, 'record' | 'status'>): boolean {
  return pass.record.unproved.length > 0 && !isRereadingDue(pass);
}

/** Our own action has raised the host's epoch, and nothing has been written yet. */
export function keepRereadingDue({ record, status }: Pass): void {
  if (record.unproved.length > 0) record.unprovedEpoch = status.useEpoch;
}

/**
 * The devices to read again in a run: absent disks cannot be read, and those that were used since
 * the run began are not read (P1).
 */
export function plansToProve(pass: PassView, run: RunView): agent.DevicePlan[] {
  if (!isRereadingDue(pass)) return [];
  const present = identitiesNow(pass);
  return rereadings(pass).filter((plan) => !hasInspected(run) || present.has(keyOf(plan)));
}

/** Whether a run has inspected its host already. */
export function hasInspected({ steps, currentStep }: RunView): boolean {
  return steps.some(({ name, state }, at) => {
    const isInspection = name === engineSteps.inspect || name === engineSteps.inspectAgain;
    return at < currentStep && isInspection && state === StepState.SUCCEEDED;
  });
}

/** The orders to read the record's disks again, for every kind of run that does so. */
export function rereadings(pass: PassView): agent.DevicePlan[] {
  return pass.record.unproved.flatMap(({ plan }) =>
    plan === undefined ? [] : [rereadingOf(pass, plan)],
  );
}

/**
 * The order to read a device again: by the site's present policy, however completely it was read.
 */
function rereadingOf({ spec, snapshot }: PassView, plan: agent.DevicePlan): agent.DevicePlan {
  const method = methodOf(plan.method);
  if (plan.device === undefined || method === undefined) return plan;
  const { sizeBytes } = deviceFactsOf(plan.device);
  const policy = verificationPolicy(spec, snapshot.fleet);
  const verification = planRereading(orderedVerification(plan), { method, sizeBytes, policy });
  return create(agent.DevicePlanSchema, {
    ...plan,
    verification: verificationToWire(verification),
  });
}

/** Whether an automatic clean reads again itself, before the host counts as erased. */
export function provesAtOnce(pass: PassView): boolean {
  const { spec, status } = pass;
  switch (spec.cleaning?.powerCycleCheck ?? PowerCycleCheck.UNSPECIFIED) {
    case PowerCycleCheck.IMMEDIATE:
      return true;
    case PowerCycleCheck.NEXT_BOOT:
      return false;
    default: {
      const noMoreBoots = spec.retired || status.deletion !== undefined;
      const distrusted = hasFault(status.faults, contentReturned);
      const cached = inventoryNow(pass)?.devices.some(
        ({ writeCache }) => writeCache === WriteCache.FIXED_ON,
      );
      return canReadAgain(pass) && (noMoreBoots || distrusted || cached === true);
    }
  }
}

/** Records the result of a second reading; returns why it is no proof, or undefined. */
export function proveErased(
  pass: Pass,
  step: StepView,
  evidence: agent.Evidence | undefined,
): RunFailure | undefined {
  return withEvidence(pass, step, evidence, (signed, parsed) => {
    const lack = whyNoProof(pass, parsed, orderAgeOf(pass, step));
    if (lack !== undefined) return lack;
    pass.effects.push({ kind: 'document', documents: addenda(pass, signed, parsed) });
    pass.record.unproved = [];
    noteSpeeds(pass, parsed.devices);
    clearFault(pass, contentReturned);
    return undefined;
  });
}

function whyNoProof(
  pass: PassView,
  parsed: agent.StepEvidence,
  orderAgeMs: number,
): RunFailure | undefined {
  const { operation } = pass.record;
  const ordered = operation?.operation;
  if (parsed.operationId !== ordered?.id || parsed.hostUid !== pass.host.uid) {
    return invalidResult(`the evidence is of ${parsed.operationId || 'no operation'}`);
  }
  if (parsed.ofFailedStep) return invalidResult('the evidence says that the step failed');
  if (ordered?.kind.case !== 'runStep') return invalidResult('no reading was ordered');
  const { devices: plans, challengeSeed } = ordered.kind.value;
  if (parsed.devices.length !== plans.length) {
    const count = `${parsed.devices.length} devices instead of ${plans.length}`;
    return invalidResult(`the evidence speaks of ${count}`);
  }
  for (const plan of plans) {
    const lack = whyNotProved(pass, parsed, { plan, challengeSeed, orderAgeMs });
    if (lack !== undefined) return lack;
  }
  return undefined;
}

/** The order for the second reading of one device. */
interface OrderedReading {
  readonly plan: agent.DevicePlan;
  readonly challengeSeed: Uint8Array;
  readonly orderAgeMs: number;
}

function whyNotProved(
  pass: PassView,
  parsed: agent.StepEvidence,
  { plan, challengeSeed, orderAgeMs }: OrderedReading,
): RunFailure | undefined {
  const key = keyOf(plan);
  const outcome = parsed.devices.find((each) => keyOf(each) === key);
  if (outcome === undefined) return invalidResult(`the evidence says nothing of disk ${key}`);
  if (outcome.verdict !== agent.VerdictKind.ERASED || outcome.placesRead === 0n) {
    return stepFailure('unverified', `disk ${key}: ${outcome.verdictReason || 'nothing was read'}`);
  }
  if (outcome.certificate !== plan.certificate) {
    return invalidResult(`disk ${key}: the evidence is about another certificate`);
  }
  if (bootOf(pass, plan) === parsed.bootId) {
    return invalidResult(`disk ${key} was read by the boot that had erased it`);
  }
  const asOrdered =
    outcome.method === plan.method &&
    Buffer.from(outcome.challengeSeed).equals(challengeSeed) &&
    Buffer.from(outcome.erasedSeed).equals(plan.erasedSeed);
  if (!asOrdered) return invalidResult(`disk ${key} was not read as it was ordered`);
  const untrue = whyUntrue(outcome, plan, orderAgeMs);
  return untrue === undefined ? undefined : invalidResult(`disk ${key}: ${untrue}`);
}

/** P2 */
function bootOf({ record }: PassView, { certificate }: agent.DevicePlan): string {
  return record.unproved.find(({ plan }) => plan?.certificate === certificate)?.bootId ?? '';
}

/** P3: a failed reading, by what it shows about the disks. */
export function noteNotProved(pass: Pass, result: agent.Failed): void {
  const { type, message, evidence } = result;
  const { reading } = policyOfFailure(type);
  if (reading === 'nothing') return;
  const { status, record } = pass;
  if (reading === 'dataLeft') {
    setFault(pass, contentReturned, message);
    const documents = revocations(pass, evidence);
    if (documents.length > 0) pass.effects.push({ kind: 'document', documents });
  }
  record.unproved = [];
  if (status.state === HostState.AVAILABLE || !status.dirty) move(status, 'unproved');
}

/** One name for the same failure, from any source. */
export function nameOfNotProved({
  type,
  message,
}: Pick<agent.Failed, 'type' | 'message'>): RunFailure | undefined {
  const isLeft = policyOfFailure(type).reading === 'dataLeft';
  return isLeft ? stepFailure(contentReturned, message) : undefined;
}

/** What an erasure leaves for the second reading: the device as ordered, and its certificate. */
export function unprovedDevice(
  pass: PassView,
  plan: agent.DevicePlan,
  more: {
    readonly seed: Uint8Array;
    readonly certificate: string;
    readonly statementSha256: Uint8Array;
    readonly bootId: BootId;
  },
): store.UnprovedDevice {
  const { seed, certificate, bootId, statementSha256 } = more;
  return create(store.UnprovedDeviceSchema, {
    plan: { ...plan, erasedSeed: seed, certificate },
    useEpoch: pass.status.useEpoch,
    bootId,
    statementSha256,
  });
}

function keyOf(of: { readonly device?: agent.DevicePlan['device'] } | undefined): string {
  return of?.device === undefined ? '' : deviceIdentity(of.device);
}
