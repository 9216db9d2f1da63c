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
import { clearFault, setFault } from '../turn/fault.ts';
import { invalidResult, stepFailure } from '../turn/step-failure.ts';
import { engineSteps } from '../turn/step-names.ts';
import { move } from '../turn/transitions.ts';
import { identitiesNow, inventoryNow, type Turn } from '../turn/turn.ts';
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
export function canReadAgain({ record, context }: Turn): boolean {
  const steps = record.runner?.steps ?? [];
  const known = steps.length > 0 ? steps : context.facts.runnerSteps;
  return known.some(({ name }) => name === verifyErasedStep);
}

/**
 * Remembers what has just been erased, to be read again after a power cycle. A runner that cannot
 * read again erases nothing that could be proved later (R8): its certificates stay as they are.
 */
export function noteUnproved(turn: Turn, unproved: readonly store.UnprovedDevice[]): void {
  const { record, status } = turn;
  if (!canReadAgain(turn)) return;
  if (!isDue(turn)) record.unproved = [];
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
export function isDue({ record, status }: Pick<Turn, 'record' | 'status'>): boolean {
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
}: Pick<Turn, 'record' | 'status' | 'spec'>): boolean {
  const check = spec.cleaning?.powerCycleCheck ?? PowerCycleCheck.UNSPECIFIED;
  const isOthers =
    status.state === HostState.EXTERNAL || record.adoptTo === HostState.EXTERNAL || status.dirty;
  return check !== PowerCycleCheck.NEXT_BOOT && !isOthers && isDue({ record, status });
}

/** P1: what the host was used since is not read again. */
export function dropUsed(turn: Turn): void {
  if (!isDue(turn)) turn.record.unproved = [];
}

/** The epoch of the host has risen by our own doing, and nothing has been written yet. */
export function stayDue({ record, status }: Turn): void {
  if (record.unproved.length > 0) record.unprovedEpoch = status.useEpoch;
}

/** What the reading of a run is about: of disks that are not there any more nothing can be told. */
export function plansToProve(turn: Turn, run: Run): agent.DevicePlan[] {
  const present = identitiesNow(turn);
  return rereadings(turn).filter((plan) => !hasLooked(run) || present.has(keyOf(plan)));
}

/** Whether a run has inspected its host already. */
export function hasLooked({ steps, currentStep }: Run): boolean {
  return steps.some(({ name, state }, at) => {
    const looks = name === engineSteps.inspect || name === engineSteps.inspectAgain;
    return at < currentStep && looks && state === StepState.SUCCEEDED;
  });
}

/** What the disks of the record are read again by, wherever a run does that. */
export function rereadings(turn: Turn): agent.DevicePlan[] {
  return turn.record.unproved.flatMap(({ plan }) =>
    plan === undefined ? [] : [rereadingOf(turn, plan)],
  );
}

/** The order to read a device again: by the site's policy of now, however whole it was read. */
function rereadingOf({ spec, context }: Turn, plan: agent.DevicePlan): agent.DevicePlan {
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
export function provesAtOnce(turn: Turn): boolean {
  const { spec, status } = turn;
  switch (spec.cleaning?.powerCycleCheck ?? PowerCycleCheck.UNSPECIFIED) {
    case PowerCycleCheck.IMMEDIATE:
      return true;
    case PowerCycleCheck.NEXT_BOOT:
      return false;
    default: {
      const noMoreBoots = spec.retired || status.deletion !== undefined;
      const distrusted = status.faults.some(({ type }) => type === contentReturned);
      const cached = inventoryNow(turn)?.devices.some(
        ({ writeCache }) => writeCache === WriteCache.FIXED_ON,
      );
      return canReadAgain(turn) && (noMoreBoots || distrusted || cached === true);
    }
  }
}

/** Takes in what reading again has shown; returns why that is no proof, or undefined. */
export function proveErased(
  turn: Turn,
  step: RunStep,
  evidence: agent.Evidence | undefined,
): RunFailure | undefined {
  return withEvidence(turn, step, evidence, (signed, parsed) => {
    const lack = whyNoProof(turn, parsed, orderAgeOf(turn, step));
    if (lack !== undefined) return lack;
    turn.effects.push({ kind: 'document', documents: addenda(turn, signed, parsed) });
    turn.record.unproved = [];
    noteSpeeds(turn, parsed.devices);
    clearFault(turn, contentReturned);
    return undefined;
  });
}

function whyNoProof(
  turn: Turn,
  parsed: agent.StepEvidence,
  orderAgeMs: number,
): RunFailure | undefined {
  const { operation } = turn.record;
  const ordered = operation?.operation;
  if (parsed.operationId !== ordered?.id || parsed.hostUid !== turn.host.uid) {
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
    const lack = whyNotProved(turn, parsed, { plan, challengeSeed, orderAgeMs });
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
  turn: Turn,
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
  if (bootOf(turn, plan) === parsed.bootId) {
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
function bootOf({ record }: Turn, { certificate }: agent.DevicePlan): string {
  return record.unproved.find(({ plan }) => plan?.certificate === certificate)?.bootId ?? '';
}

/** P3: a reading that failed, by what it says of the disks. */
export function noteNotProved(turn: Turn, result: agent.Failed): void {
  const { type, message, evidence } = result;
  if (saysNothing.has(type)) return;
  const { status, record } = turn;
  if (saysLeft.has(type)) {
    setFault(turn, contentReturned, message, clearedBy);
    const documents = revocations(turn, evidence);
    if (documents.length > 0) turn.effects.push({ kind: 'document', documents });
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
  turn: Turn,
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
    useEpoch: turn.status.useEpoch,
    bootId,
    statementSha256,
  });
}

function keyOf(of: { readonly device?: agent.DevicePlan['device'] } | undefined): string {
  return of?.device === undefined ? '' : deviceIdentity(of.device);
}
