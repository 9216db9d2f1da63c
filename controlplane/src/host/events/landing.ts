/** The state of the host after the end of a run: applies the tables of `pass/transitions.ts`. */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actorKind,
  actors,
  type Claim,
  FailureType,
  FaultClearing,
  FaultSeverity,
  faultOfType,
  HostErrorSchema,
  HostState,
  hasFault,
  isBySystem,
  isPool,
  type Run,
  type RunFault,
  RunKind,
  RunOutcome,
  readActor,
} from '@rackwright/messages';
import { clearInBand } from '../bmc/health.ts';
import { type DiskAfter, settleDisk } from '../deployment/deployment.ts';
import { forgetDisks, settleWritten } from '../deployment/written-disk.ts';
import { erasesAsAsked, lastCleaned, uncertifiedDevice } from '../erasure/certify.ts';
import { backOff, metAnotherMachine, wantsAvailable } from '../life/goal.ts';
import { clearFault, setFault } from '../pass/fault.ts';
import { faultsHealedBy, isClearedByAnyRun } from '../pass/fault-clearing.ts';
import {
  inventoryNow,
  type Pass,
  type PassView,
  recordCause,
  runName,
  runNameForEver,
  timeNow,
} from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';
import { engineSteps, isOfTemplate } from '../pass/step-names.ts';
import {
  type KnownRunKind,
  type Landing,
  landings,
  move,
  type Outcome,
  provisionFailed,
  type State,
  transit,
} from '../pass/transitions.ts';
import { dropPower } from '../power/pending-power.ts';
import { landAfterFailure } from '../run/after-failure.ts';
import { restorePower } from './power-after.ts';

/** Kinds whose end does not affect the goal: its backoff stays as it was. */
const besideTheGoal: ReadonlySet<RunKind> = new Set([
  RunKind.POWER,
  RunKind.SERVICE,
  RunKind.WORKFLOW,
  RunKind.RESCUE,
  RunKind.RELEASE,
  RunKind.REIMAGE,
]);

/** A deletion's own runs are its goal. */
function isBeside({ kind, requestedBy }: RunView): boolean {
  return besideTheGoal.has(kind) && actorKind(readActor(requestedBy)) !== 'deletion';
}

/** Applies the landing of a run that has just ended. */
export function applyRunEnd(pass: Pass, run: Run): void {
  const landing = landings[run.kind as KnownRunKind][run.outcome as Outcome];
  const { status } = pass;
  clearInBand(pass);
  const before = status.state;
  const { replaced } = pass.record;
  const disk = deploys(run) ? settleDisk(pass, run) : undefined;
  if (disk !== undefined) settleWritten(pass, replaced, disk);
  const ready = disk === 'untouched' && isReadyStill(pass, run) ? landing.untouched : undefined;
  const mayHaveWritten = disk !== undefined && ready === undefined;
  transit(status, {
    to: ready ?? landingState(pass, run, landing),
    ...(landing.disks === 'dirty' ? { disks: ready === undefined ? 'dirty' : 'clean' } : {}),
    // Earlier certificates do not cover data that it, or a person, may have written.
    ...(landing.use === 'next' || mayHaveWritten ? { use: 'next' } : {}),
  });
  if (before === HostState.PROVISIONED || hasDeployedContent(pass, run, disk)) {
    pass.record.eraseBeforeRemoval = true;
  }
  if (landing.disks === 'clean' && erasesAsAsked(pass, run)) {
    transit(status, { disks: 'clean' });
    forgetDisks(pass);
  }
  if (run.outcome === RunOutcome.SUCCEEDED) landWell(pass, run);
  else landBadly(pass, run, landing, disk);
  landAfterFailure(pass, run);
  // A person has confirmed the state of the host.
  if (landing.to === 'adopted') delete pass.record.lookFirstSince;
}

function deploys({ kind }: RunView): boolean {
  return kind === RunKind.PROVISION || kind === RunKind.REIMAGE;
}

const isOfIdentity: ReadonlySet<FailureType> = new Set([
  FailureType.IDENTITY_MISMATCH,
  FailureType.IDENTITY_UNPROVEN,
]);

/**
 * Whether a host that was not provisioned after all is as ready as before: nothing was written or
 * booted, and each of its disks has a certificate of this use; a host without disks was not used.
 */
function isReadyStill(pass: Pass, { error }: RunView): boolean {
  if (error !== undefined && isOfIdentity.has(error.type)) return false;
  // It may have come in this pass, and with it the reason why the run failed.
  const inventory = inventoryNow(pass);
  if (inventory === undefined || !mayBeKeptReady(pass)) return false;
  const { record, status } = pass;
  const isCertified = record.certified.some(({ useEpoch }) => useEpoch === status.useEpoch);
  // Without a disk there is no certificate that a use in between could end. The state has left
  // `available` with such a use.
  if (!isCertified && status.state !== HostState.AVAILABLE) return false;
  return uncertifiedDevice(pass, inventory) === undefined;
}

/** Whether the disks now hold an image, a part of one, or data of a template. */
function hasDeployedContent(
  { status }: PassView,
  { kind, steps }: RunView,
  disk: DiskAfter | undefined,
): boolean {
  if (status.state === HostState.PROVISIONED) return true;
  if (kind === RunKind.PROVISION) return disk !== 'untouched';
  if (kind !== RunKind.WORKFLOW) return false;
  return steps.some((step) => {
    const { attempt, destructive, handOff, name } = step;
    const boots = handOff || (isOfTemplate(step) && name === engineSteps.on);
    return attempt > 0 && (destructive || boots);
  });
}

function landingState(pass: Pass, run: RunView, landing: Landing): State {
  const before = pass.status.state as State;
  switch (landing.to) {
    case 'same':
      return before;
    case 'proved':
      return before === HostState.NEW ? HostState.MANAGEABLE : before;
    case 'adopted':
      return pass.record.adoptTo as State;
    case 'goal':
      return mayBecomeAvailable(pass, run) ? HostState.AVAILABLE : HostState.MANAGEABLE;
    default:
      return landing.to;
  }
}

function mayBecomeAvailable(pass: Pass, run: RunView): boolean {
  return mayBeKeptReady(pass) && !run.manual;
}

/** A host that is about to be removed is not kept ready. */
function mayBeKeptReady({ spec, status }: Pass): boolean {
  return wantsAvailable(spec) && status.deletion === undefined;
}

function landWell(pass: Pass, run: RunView): void {
  const { status, record } = pass;
  const cleaned = run.kind === RunKind.CLEAN ? lastCleaned(pass, run) : undefined;
  if (cleaned !== undefined) status.lastCleaned = cleaned;
  // Erased as its policy demands: a host that is dirty after that is not erased again.
  const asAsked = !run.manual || !status.dirty;
  if (run.kind === RunKind.CLEAN && asAsked) record.eraseBeforeRemoval = false;
  const towardsGoal = !isBeside(run);
  const sameWork = status.lastError?.runKind === run.kind;
  // Its own BMC responds again. This error would request the same verify again, without end.
  const isAnswered = sameWork || (run.kind === RunKind.VERIFY && metAnotherMachine(pass));
  if (towardsGoal) delete status.backoff;
  for (const fault of faultsHealedBy(run.kind as KnownRunKind)) clearFault(pass, fault);
  if (run.kind === RunKind.CLEAN) keepAsWarning(pass, provisionFailed);
  if (isAnswered || (towardsGoal && !isErrorOfFault(pass))) delete status.lastError;
  if (!isBySystem(run.requestedBy)) clearWarnings(pass);
  if (run.kind === RunKind.ADOPT) record.adoptTo = HostState.UNSPECIFIED;
  if (run.kind === RunKind.RELEASE && endsWith(run, status.claim)) delete status.claim;
  recordCause(pass, actors.system, `${runNameForEver(run)} succeeded`);
  if (wasLeftAlone(pass, run)) {
    move(status, 'used');
    recordCause(pass, actors.system, 'no longer available: it stood on while nobody saw it');
  }
}

/** The caller that released the host no longer uses it; a later claim is for another use. */
function endsWith({ requestedBy, startTime }: RunView, claim: Claim | undefined): boolean {
  if (claim?.by !== requestedBy) return false;
  if (claim.at === undefined || startTime === undefined) return true;
  return timestampMs(claim.at) <= timestampMs(startTime);
}

/** An available host that could not be switched off right after a failed run. */
function wasLeftAlone(
  { status, snapshot }: PassView,
  { kind, requestedBy, startTime }: RunView,
): boolean {
  if (status.state !== HostState.AVAILABLE || kind !== RunKind.POWER) return false;
  const sinceMs = startTime === undefined ? 0 : timestampMs(startTime);
  const isOwn = isBySystem(requestedBy);
  return isOwn && snapshot.nowMs - sinceMs > snapshot.timing.contactDeadlineMs;
}

function landBadly(pass: Pass, run: Run, landing: Landing, disk: DiskAfter | undefined): void {
  const { status } = pass;
  const outcome = outcomeName(run.outcome);
  const cause = `${run.error?.message ?? outcome}${leftOnDisk(pass, disk)}`;
  recordCause(
    pass,
    readActor(run.abort?.by ?? actors.system),
    `${runNameForEver(run)} ${outcome}: ${cause}`,
  );
  const beside = isBeside(run);
  // A failure beside the goal is a fault of its own; the reason why the goal waits must stay
  // visible.
  const hidesGoal = beside && status.backoff !== undefined;
  // A person's stop of an inspection is no error of the host.
  const isStoppedInspection = run.kind === RunKind.INSPECT && run.outcome === RunOutcome.CANCELLED;
  if (run.error !== undefined && !hidesGoal && !isStoppedInspection) {
    status.lastError = create(HostErrorSchema, {
      failure: run.error,
      time: timeNow(pass),
      run: runName(run),
      runKind: run.kind,
    });
  }
  const isStopped = run.outcome === RunOutcome.CANCELLED && disk === 'untouched';
  if (landing.fault !== undefined && !isStopped) setLandingFault(pass, landing.fault, cause, disk);
  if (!beside && !leavesGoal(pass, run)) backOff(pass, run);
  const isBmcOpen = run.kind === RunKind.VERIFY && run.outcome !== RunOutcome.CANCELLED;
  if (isBmcOpen) dropPower(pass, `${runName(run)} failed: it is open whose BMC that is`);
  restorePower(pass, run, disk);
}

/**
 * A deployment that left the host ready. Or one of a pool: the pool decides when to retry, and the
 * clean that comes first has not failed.
 */
function leavesGoal({ status }: PassView, { kind, requestedBy }: RunView): boolean {
  if (kind !== RunKind.PROVISION) return false;
  return status.state === HostState.AVAILABLE || isPool(readActor(requestedBy));
}

/**
 * A host that runs its earlier image again has lost nothing. The failure is shown until the next
 * success, and prevents nothing. But the host is no better than before: an earlier error stays.
 */
function setLandingFault(
  pass: Pass,
  type: RunFault,
  cause: string,
  disk: DiskAfter | undefined,
): void {
  const { state, faults } = pass.status;
  const isErrorSet = faultOfType(faults, type)?.severity === FaultSeverity.ERROR;
  const isBack = disk === 'untouched' && !isErrorSet;
  if (isBack && state === HostState.PROVISIONED) {
    const clearing = FaultClearing.ANY_RUN;
    setFault(pass, type, cause, { severity: FaultSeverity.WARNING, clearing });
  } else if (isBack && state === HostState.AVAILABLE) {
    setFault(pass, type, cause, { severity: FaultSeverity.WARNING });
  } else setFault(pass, type, cause);
}

/** Ready again, the host is healthy; the failure to run the requested image is still shown. */
function keepAsWarning({ status }: Pass, type: RunFault): void {
  const fault = faultOfType(status.faults, type);
  if (fault !== undefined) fault.severity = FaultSeverity.WARNING;
}

/** Whether the last error is from a provision that is still shown as a fault. */
function isErrorOfFault({ status }: PassView): boolean {
  const isSet = hasFault(status.faults, provisionFailed);
  return isSet && status.lastError?.runKind === RunKind.PROVISION;
}

/** Only success beyond restoring the power shows that the host is healthy. */
function clearWarnings(pass: Pass): void {
  pass.status.faults = pass.status.faults.filter((fault) => !isClearedByAnyRun(fault));
}

/** What a person must know of a host after an attempt to write its disk. */
function leftOnDisk({ status, record }: PassView, disk: DiskAfter | undefined): string {
  if (disk === undefined) return '';
  const netboots = status.deploy?.netboot === true;
  switch (disk) {
    case 'lost':
      return `; on the disk: a part of ${record.image} at most, which does not boot`;
    case 'whole':
      return netboots
        ? `; it boots ${status.image} over the network`
        : `; on the disk: the whole of ${status.image}`;
    case 'untouched': {
      if (status.state !== HostState.PROVISIONED) return '; nothing was written';
      if (netboots) return `; it boots ${status.image} over the network, as before`;
      return `; on the disk: ${status.image || 'what ran there before'}, untouched`;
    }
  }
}

function outcomeName(outcome: RunOutcome): string {
  switch (outcome) {
    case RunOutcome.SUCCEEDED:
      return 'succeeded';
    case RunOutcome.FAILED:
      return 'failed';
    case RunOutcome.TIMED_OUT:
      return 'timed out';
    case RunOutcome.CANCELLED:
      return 'cancelled';
    default:
      return 'ended';
  }
}
