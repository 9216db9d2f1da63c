/**
 * The intent to delete a host, and its consequences (DESIGN §7): release, erasure and power off as
 * ordinary runs, then the run that removes the host; a forced deletion starts that run at once.
 *
 * Invariants:
 * 1. The intent only rises, from normal to force; only a normal one can be cancelled.
 * 2. The mode is read at each decision (`forced.ts`).
 * 3. The power of an external host is not changed.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  AbandonedResourceSchema,
  AbortSchema,
  actorKind,
  actors,
  DeletionMode,
  DeletionSchema,
  type Hold,
  HoldScope,
  HostState,
  type Run,
  RunKind,
  RunOutcome,
  readActor,
  store,
} from '@rackwright/messages';
import { endpointText } from '../bmc/endpoint.ts';
import { isByHand, isOtherSwitch } from '../bmc/protocols.ts';
import { isToBeProvedBeforeItGoes } from '../erasure/power-cycle.ts';
import { busyText, busyWith } from '../life/busy.ts';
import { holdForReview, mayRetryGoal, noteMissingNeeds } from '../life/goal.ts';
import { refuseHost } from '../life/refusal.ts';
import { cancelOperation } from '../operation/operation.ts';
import { endShutdownWait, shutdownUnderWay } from '../operation/shutdown.ts';
import {
  activeRun,
  currentStep,
  type Pass,
  type PassView,
  recordCause,
  runName,
  timeNow,
} from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';
import type { HostRequest, Refusal, RequestedStep, Requester } from '../pass/types.ts';
import { endRun, startRun } from '../run/engine.ts';
import { isForced, limitCall, recordRemnant, whyNotWaited } from '../run/forced.ts';
import { isFenceHold } from './fence-hold.ts';

/** The most hosts that a rack's agent still has to forget; its record is bounded. */
const tombstonesMax = 2_000;
const tooManyRemains =
  `the agent of its rack has still to forget ${tombstonesMax} hosts that were removed by force; ` +
  'start it first';

type DeleteRequest = Extract<HostRequest, { kind: 'delete' }>;

/** Whether the present intent already covers the request: then nothing changes. */
export function isDeletionRequested({ status }: PassView, { mode }: DeleteRequest): boolean {
  if (status.deletion === undefined) return false;
  return status.deletion.mode === DeletionMode.FORCE || mode !== DeletionMode.FORCE;
}

/** Records the intent, and ends work that prevents the deletion. */
export function requestDeletion(
  pass: Pass,
  request: DeleteRequest,
  by: Requester,
): Refusal | undefined {
  const { status, record, snapshot } = pass;
  const busy = busyWith(pass);
  if (busy !== undefined) return refuseHost(pass, 'busy', busyText(busy));
  const mode = request.mode === DeletionMode.FORCE ? DeletionMode.FORCE : DeletionMode.NORMAL;
  if (mode === DeletionMode.FORCE && snapshot.tombstones >= tombstonesMax) {
    return refuseHost(pass, 'limit', tooManyRemains);
  }
  const { reason } = request;
  delete status.backoff;
  delete record.pendingPower;
  delete record.plannedDeletion;
  // Who asks for it now has checked (`restored.ts`, G3).
  delete record.lookFirstSince;
  status.deletion = create(DeletionSchema, { by: by.actor, reason, at: timeNow(pass), mode });
  const forced = mode === DeletionMode.FORCE ? ' by force' : '';
  if (reason !== '') recordCause(pass, by.actor, `to be removed${forced}: ${reason}`);
  const run = activeRun(status);
  // A host provisioned before landings were recorded, or with a provision in progress.
  const runsImage = status.state === HostState.PROVISIONED || run?.kind === RunKind.PROVISION;
  if (runsImage || (status.dirty && status.image !== '')) record.eraseBeforeRemoval = true;
  if (run === undefined) return undefined;
  if (isForced(pass)) forceOn(pass, run);
  const leadsThere = run.kind === RunKind.RELEASE || isOfDeletion(run);
  if (run.kind === RunKind.DELETE || (leadsThere && !isForced(pass))) return undefined;
  abortFor(pass, run, 'the host is to be deleted', by);
  return undefined;
}

/** Waits for one call at most, and not for a system to shut down. */
function forceOn(pass: Pass, run: Run): void {
  limitCall(pass);
  const shutdown = shutdownUnderWay(pass.record, currentStep(run));
  if (shutdown === undefined || run.kind !== RunKind.DELETE) return;
  endShutdownWait(pass, shutdown);
  cancelOperation(pass);
}

/** A run that must not be stopped ends first, or is left behind. */
function abortFor(pass: Pass, run: Run, reason: string, by: Requester): void {
  run.abort ??= create(AbortSchema, { by: by.actor, reason, at: timeNow(pass) });
  if (currentStep(run)?.abortable !== false) cancelOperation(pass);
}

const makeAgain = 'make the host known again afterwards';

/**
 * A normal deletion can be cancelled until its removal has begun; a forced one cannot. The runs of
 * the deletion end with it; finished work is not undone.
 */
export function cancelDelete(pass: Pass, reason: string, by: Requester): Refusal | undefined {
  const { status, record } = pass;
  if (status.deletion === undefined)
    return refuseHost(
      pass,
      'nothingToDo',
      'no deletion is under way; there is nothing to take back',
    );
  if (isForced(pass))
    return refuseHost(pass, 'deleting', `a forced deletion cannot be taken back; ${makeAgain}`);
  if (record.forgetting)
    return refuseHost(
      pass,
      'deleting',
      `the removal has begun and cannot be taken back; ${makeAgain}`,
    );
  delete status.deletion;
  delete status.backoff;
  delete record.plannedDeletion;
  recordCause(pass, by.actor, `deletion taken back: ${reason || 'no reason given'}`);
  const run = activeRun(status);
  if (run !== undefined && isOfDeletion(run))
    abortFor(pass, run, 'the deletion was taken back', by);
  return undefined;
}

/** A forced deletion waits for another run at most for one call. */
export function foldForce(pass: Pass): void {
  const run = activeRun(pass.status);
  if (!isForced(pass) || run === undefined || run.kind === RunKind.DELETE) return;
  const why = whyNotWaited(pass);
  if (why === undefined) return;
  if (pass.record.operation?.sentTo !== undefined) {
    const at = currentStep(run)?.name ?? 'its end';
    recordRemnant(pass, `work: ${runName(run)} may still be going on at ${at}: ${why}`);
  }
  const message = `given up for the removal of the host: ${why}`;
  endRun(pass, run, RunOutcome.CANCELLED, stepFailure('cancelled', message));
}

/** Starts the next run of the deletion; false when it must wait. */
export function driveDeletion(pass: Pass): boolean {
  const { status } = pass;
  if (isForced(pass)) {
    startStage(pass);
    return true;
  }
  const first = runBeforeRemoval(pass);
  if (holdForReview(pass, first ?? RunKind.DELETE) === 'held') return false;
  if (!mayRetryGoal(pass)) return false;
  if (first === undefined) {
    if (whyNotRemoved(pass) !== undefined) return false;
    startStage(pass);
    return true;
  }
  if (holdOnDeletion(pass) !== undefined) return false;
  if (noteMissingNeeds(pass) === 'missing') return false;
  startStage(pass);
  recordCause(pass, actors.system, `${runName(status.run as Run)} started towards the deletion`);
  return true;
}

/** Whether the deletion has started the run, as its own. */
function isOfDeletion({ requestedBy }: RunView): boolean {
  return actorKind(readActor(requestedBy)) === 'deletion';
}

/** Starts the next run on the way to the removal, without the checks for holds. */
export function startStage(pass: Pass): Run {
  const { status, record } = pass;
  const by = readActor(status.deletion?.by ?? '');
  const first = isForced(pass) ? undefined : runBeforeRemoval(pass);
  if (isForced(pass)) startRun(pass, RunKind.DELETE, by, forcedSteps(pass));
  else if (first === undefined) startRun(pass, RunKind.DELETE, by, stepsBeforeRemoval(pass));
  else startRun(pass, first, actors.deletion);
  // A deletion that was started from a plan erases only the devices of that plan.
  if (first === RunKind.CLEAN && record.plannedDeletion !== undefined) {
    record.plannedErasure = clone(store.PlannedErasureSchema, record.plannedDeletion);
  }
  return status.run as Run;
}

/** A host in deletion. */
type Going = Pick<PassView, 'status' | 'record' | 'spec'>;

/** The run that must succeed before a host may be removed. */
export function runBeforeRemoval(going: Going): RunKind | undefined {
  if (going.status.state === HostState.PROVISIONED) return RunKind.RELEASE;
  if (mustBeErased(going)) return RunKind.CLEAN;
  if (going.spec.deletion?.keepData === true) return undefined;
  return isToBeProvedBeforeItGoes(going) ? RunKind.INSPECT : undefined;
}

/** It ran an image and has not been erased since, unless another owner's data may be on it. */
function mustBeErased({ status, record, spec }: Going): boolean {
  if (status.state === HostState.EXTERNAL || record.adoptTo === HostState.EXTERNAL) return false;
  return record.eraseBeforeRemoval && spec.deletion?.keepData !== true && status.dirty;
}

/** Why a pending deletion cannot release or erase: a hold, or a fence. */
export function holdOnDeletion({ status, record }: Going): Hold | undefined {
  const kept = status.holds.find(({ scope }) => scope === HoldScope.RELEASE);
  return kept ?? (record.fences.length > 0 ? status.holds.find(isFenceHold) : undefined);
}

const powerOff: RequestedStep = { step: engineSteps.off, arguments: {} };

/** A host in deletion, and its surroundings. */
type Leaving = Going & Pick<PassView, 'snapshot'>;

/**
 * Why a host that is on has to wait for its removal: nothing can switch it off; undefined: it need
 * not wait.
 */
export function whyNotRemoved(leaving: Leaving): SwitchObstacle | undefined {
  if (leaving.status.deletion?.mode === DeletionMode.FORCE) return undefined;
  if (runBeforeRemoval(leaving) !== undefined || !isToBeSwitchedOff(leaving)) return undefined;
  return whyNotSwitched(leaving);
}

/** A host that is known to be on is switched off before its removal. */
function isToBeSwitchedOff(going: Going): boolean {
  return going.status.poweredOn === true && isOursToSwitch(going);
}

function stepsBeforeRemoval(pass: PassView): RequestedStep[] {
  return isToBeSwitchedOff(pass) ? [powerOff] : [];
}

/** A forced deletion also switches off a host that runs an image, because nothing else stops it. */
function forcedSteps(pass: Pass): RequestedStep[] {
  const { status } = pass;
  const mayBeOn = status.poweredOn ?? status.state === HostState.PROVISIONED;
  if (!mayBeOn || !isOursToSwitch(pass)) return [];
  const why = whyNotSwitched(pass);
  if (why === undefined) return [powerOff];
  recordRemnant(pass, `power: the host may be on and was not switched off: ${why.text}`);
  return [];
}

/** Invariant 3, and the policy that leaves the power unchanged. */
function isOursToSwitch({ status, spec, record }: Going): boolean {
  if (record.adoptTo === HostState.EXTERNAL) return false;
  return status.state !== HostState.EXTERNAL && spec.deletion?.keepPower !== true;
}

/** Why nothing can switch a host off. */
interface SwitchObstacle {
  readonly kind: 'noAgent' | 'bmcUnverified' | 'bmcChanged' | 'noCredential' | 'fenced';
  /** For people. */
  readonly text: string;
}

function whyNotSwitched({ spec, status, snapshot, record }: Leaving): SwitchObstacle | undefined {
  if (!snapshot.agentRegistered) {
    return { kind: 'noAgent', text: 'no agent has ever joined its rack' };
  }
  const isVerified = isByHand(spec) ? record.verifiedBmc : status.bmcIdentity;
  if (isVerified === undefined) {
    return { kind: 'bmcUnverified', text: 'its BMC was never verified' };
  }
  if (isOtherSwitch(record.verifiedBmc, spec.bmc)) {
    return { kind: 'bmcChanged', text: 'its BMC was changed and not verified' };
  }
  if (snapshot.credentialVersion === undefined) {
    return { kind: 'noCredential', text: 'the credential of its BMC does not exist' };
  }
  if (record.fences.length === 0) return undefined;
  return { kind: 'fenced', text: 'it is fenced off (fencePending)' };
}

/** The remains of a forced removal: a record for people, and a tombstone for the agent. */
export function recordRemains(pass: Pass): void {
  const { record, host, spec, status } = pass;
  if (!isForced(pass)) return;
  if (mustBeErased(pass)) {
    recordRemnant(pass, 'data: the host ran an image, and its disks have not been erased');
  }
  if (record.leftBehind.length === 0) return;
  const { bmc } = spec;
  const resource = create(AbandonedResourceSchema, {
    name: `abandonedResources/${host.uid}`,
    createTime: timeNow(pass),
    host: host.name,
    hostUid: host.uid,
    rack: spec.rack,
    bmcAddress: bmc === undefined ? '' : endpointText(bmc),
    bootMacs: [...spec.bootMacs],
    removedBy: status.deletion?.by ?? '',
    reason: status.deletion?.reason ?? '',
    leftBehind: [...record.leftBehind],
    fencePending: record.forgetting,
  });
  pass.effects.push({ kind: 'abandon', resource, bmc });
  if (record.forgetting) pass.effects.push({ kind: 'tombstone' });
}
