/**
 * Disks prove themselves again after a power cycle: the first boot of the runner after an erasure
 * reads the same places again, and new ones, before anything is written or used (DESIGN §5).
 *
 * Invariants:
 * P1 A device is read again only while nobody can have written to it: in the use of the host that
 *    its certificate is for. After that its certificate stays unproved for ever.
 * P2 Only evidence of another boot than the one that erased proves anything.
 * P3 Without success nothing is written in its run; and where it says something of the disks, an
 *    available host is available no more.
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
  FailureType,
  HostState,
  PowerCycleCheck,
  type Run,
  type RunFailure,
  type RunStep,
  StepState,
  store,
  verifyErasedStep,
  WriteCache,
} from '@rackwright/messages';
import { clearFault, setFault } from '../pass/fault.ts';
import { identitiesNow, inventoryNow, type Pass } from '../pass/pass.ts';
import { invalidResult, stepFailure } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';
import { move } from '../pass/transitions.ts';
import { orderAgeOf, whyUntrue, withEvidence } from './evidence.ts';
import { verificationPolicy } from './policy.ts';
import { addenda, revocations } from './proof-documents.ts';
import { noteSpeeds } from './speeds.ts';

/** Data that was erased has come back: the fault, and the failure of the run that saw it. */
export const contentReturned = 'dataReturned';

const clearedBy = 'a clean whose disks still are erased after a power cycle';

/** Failures of the reading that say nothing of the disks. */
const saysNothing: ReadonlySet<FailureType> = new Set([
  FailureType.CANCELLED,
  FailureType.DEADLINE,
  FailureType.IDENTITY_MISMATCH,
  FailureType.IDENTITY_UNPROVEN,
  FailureType.INTERRUPTED,
  FailureType.INTERNAL,
  FailureType.INVALID_ARGUMENT,
  FailureType.UNSUPPORTED,
]);

/** Failures that say that something is left on a disk. */
const saysLeft: ReadonlySet<FailureType> = new Set([
  FailureType.DATA_RETURNED,
  FailureType.NOT_ERASED,
]);

/** Whether the runner that is up, or was last, can read again. */
export function canReadAgain({ record, context }: Pass): boolean {
  const steps = record.runner?.steps ?? [];
  const known = steps.length > 0 ? steps : context.facts.runnerSteps;
  return known.some(({ name }) => name === verifyErasedStep);
}

/**
 * Remembers what has just been erased, to be read again after a power cycle. A runner that cannot
 * read again erases nothing that could be proved later (R8): its certificates stay as they are.
 */
export function noteUnproved(pass: Pass, unproved: readonly store.UnprovedDevice[]): void {
  const { record, status } = pass;
  if (!canReadAgain(pass)) return;
  if (!isDue(pass)) record.unproved = [];
  // Of two erasures of one device the one that reached all of it is read again.
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

/** P1: whether something is to be read again when the runner boots next. */
export function isDue({ record, status }: Pick<Pass, 'record' | 'status'>): boolean {
  return record.unproved.length > 0 && record.unprovedEpoch === status.useEpoch;
}

/**
 * Whether a host that goes out of use is to be read again first: no boot after that would. A policy
 * may leave it to the next boot all the same.
 */
export function isToBeProvedBeforeItGoes({
  record,
  status,
  spec,
}: Pick<Pass, 'record' | 'status' | 'spec'>): boolean {
  const check = spec.cleaning?.powerCycleCheck ?? PowerCycleCheck.UNSPECIFIED;
  const isOthers =
    status.state === HostState.EXTERNAL || record.adoptTo === HostState.EXTERNAL || status.dirty;
  return check !== PowerCycleCheck.NEXT_BOOT && !isOthers && isDue({ record, status });
}

/** P1: what the host was used since is not read again. */
export function dropUsed(pass: Pass): void {
  if (!isDue(pass)) pass.record.unproved = [];
}

/** The epoch of the host has risen by our own doing, and nothing has been written yet. */
export function stayDue({ record, status }: Pass): void {
  if (record.unproved.length > 0) record.unprovedEpoch = status.useEpoch;
}

/** What the reading of a run is about: of disks that are not there any more nothing can be told. */
export function plansToProve(pass: Pass, run: Run): agent.DevicePlan[] {
  const present = identitiesNow(pass);
  return rereadings(pass).filter((plan) => !hasLooked(run) || present.has(keyOf(plan)));
}

/** Whether a run has inspected its host already. */
export function hasLooked({ steps, currentStep }: Run): boolean {
  return steps.some(({ name, state }, at) => {
    const looks = name === engineSteps.inspect || name === engineSteps.inspectAgain;
    return at < currentStep && looks && state === StepState.SUCCEEDED;
  });
}

/** What the disks of the record are read again by, wherever a run does that. */
export function rereadings(pass: Pass): agent.DevicePlan[] {
  return pass.record.unproved.flatMap(({ plan }) =>
    plan === undefined ? [] : [rereadingOf(pass, plan)],
  );
}

/** The order to read a device again: by the site's policy of now, however whole it was read. */
function rereadingOf({ spec, context }: Pass, plan: agent.DevicePlan): agent.DevicePlan {
  const method = methodOf(plan.method);
  if (plan.device === undefined || method === undefined) return plan;
  const { sizeBytes } = deviceFactsOf(plan.device);
  const policy = verificationPolicy(spec, context.fleet);
  const verification = planRereading(orderedVerification(plan), { method, sizeBytes, policy });
  return create(agent.DevicePlanSchema, {
    ...plan,
    verification: verificationToWire(verification),
  });
}

/** Whether an automatic clean reads again by itself, before the host counts as erased. */
export function provesAtOnce(pass: Pass): boolean {
  const { spec, status } = pass;
  switch (spec.cleaning?.powerCycleCheck ?? PowerCycleCheck.UNSPECIFIED) {
    case PowerCycleCheck.IMMEDIATE:
      return true;
    case PowerCycleCheck.NEXT_BOOT:
      return false;
    default: {
      const noMoreBoots = spec.retired || status.deletion !== undefined;
      const distrusted = status.faults.some(({ type }) => type === contentReturned);
      const cached = inventoryNow(pass)?.devices.some(
        ({ writeCache }) => writeCache === WriteCache.FIXED_ON,
      );
      return canReadAgain(pass) && (noMoreBoots || distrusted || cached === true);
    }
  }
}

/** Takes in what reading again has shown; returns why that is no proof, or undefined. */
export function proveErased(
  pass: Pass,
  step: RunStep,
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
  pass: Pass,
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

/** How one device was ordered to be read again. */
interface OrderedReading {
  readonly plan: agent.DevicePlan;
  readonly challengeSeed: Uint8Array;
  readonly orderAgeMs: number;
}

function whyNotProved(
  pass: Pass,
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
function bootOf({ record }: Pass, { certificate }: agent.DevicePlan): string {
  return record.unproved.find(({ plan }) => plan?.certificate === certificate)?.bootId ?? '';
}

/** P3: a reading that failed, by what it says of the disks. */
export function noteNotProved(pass: Pass, result: agent.Failed): void {
  const { type, message, evidence } = result;
  if (saysNothing.has(type)) return;
  const { status, record } = pass;
  if (saysLeft.has(type)) {
    setFault(pass, contentReturned, message, clearedBy);
    const documents = revocations(pass, evidence);
    if (documents.length > 0) pass.effects.push({ kind: 'document', documents });
  }
  record.unproved = [];
  if (status.state === HostState.AVAILABLE || !status.dirty) move(status, 'unproved');
}

/** The same failure under one name, whoever named it. */
export function nameOfNotProved({
  type,
  message,
}: Pick<agent.Failed, 'type' | 'message'>): RunFailure | undefined {
  return saysLeft.has(type) ? stepFailure(contentReturned, message) : undefined;
}

/** What an erasure leaves to be read again: the device as it was ordered, and what names it. */
export function unprovedDevice(
  pass: Pass,
  plan: agent.DevicePlan,
  more: {
    readonly seed: Uint8Array;
    readonly certificate: string;
    readonly statementSha256: Uint8Array;
    readonly bootId: string;
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
