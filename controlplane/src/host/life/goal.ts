/**
 * The next run for a host's goal, the conditions for any order, and when a failed goal is retried
 * or given up.
 */

import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actorKind,
  counted,
  FailureType,
  failureWord,
  GivenUpCause,
  GoalBackoffSchema,
  type HostFault,
  HostGoal,
  type HostSpec,
  HostState,
  hasFault,
  isGivenUp,
  RerunClass,
  RunKind,
  RunOutcome,
  readActor,
  store,
} from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { sameMessage } from '../../records/index.ts';
import { hardwareFaultOf, isInspectedSince } from '../erasure/hardware.ts';
import { isToBeProvedBeforeItGoes } from '../erasure/power-cycle.ts';
import { policyOfFailure } from '../pass/failure-policy.ts';
import { clearFault, setFault } from '../pass/fault.ts';
import {
  currentStep,
  hasPassed,
  inventoryNow,
  type Pass,
  type PassView,
  runName,
  timeAfter,
  timeNow,
} from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';
import { verifyFailed } from '../pass/transitions.ts';
import { isForced } from '../run/forced.ts';
import { claimOfUse } from './claim.ts';

/** Whether the pause after a failure is over. */
export function isRetryDue(pass: PassView): boolean {
  const next = pass.status.backoff?.nextAttemptTime;
  return next === undefined || hasPassed(pass, next);
}

/**
 * Sets the fault for the first thing that runs need and the host does not have: its unique values,
 * or else its credential. Clears the other such faults. `missing`: the host gets no orders.
 */
export function noteMissingNeeds(pass: Pass): 'complete' | 'missing' {
  const need = missingNeedOf(pass);
  for (const type of needFaults) if (type !== need?.type) clearFault(pass, type);
  if (need !== undefined) setFault(pass, need.type, need.message);
  return need === undefined ? 'complete' : 'missing';
}

const needFaults = ['notUnique', 'noCredential'] as const satisfies HostFault[];

interface MissingNeed {
  readonly type: (typeof needFaults)[number];
  readonly message: string;
}

export function missingNeedOf({ snapshot, spec }: PassView): MissingNeed | undefined {
  if (!snapshot.hasReservations) {
    const message = 'another host holds one of its MAC or BMC addresses';
    return { type: 'notUnique', message };
  }
  if (snapshot.credentialVersion !== undefined) return undefined;
  const name = spec.bmc?.credential || 'none named';
  const message = `the credential (${name}) does not exist`;
  return { type: 'noCredential', message };
}

/** The next run for the goal; undefined when it is reached. */
export function wantedRun(pass: Pass): RunKind | undefined {
  const { status, record } = pass;
  if (record.adoptTo !== HostState.UNSPECIFIED) return RunKind.ADOPT;
  if (status.state === HostState.NEW || !isVerified(pass)) return RunKind.VERIFY;
  // Another machine responded, or booted: the result of the last verify must be proved again.
  if (metAnotherMachine(pass)) return RunKind.VERIFY;
  // A requested verify was refused: the BMC is not the one that the last verify proved.
  if (hasFault(status.faults, verifyFailed)) return RunKind.VERIFY;
  if (pass.spec.retired && isToBeProvedBeforeItGoes(pass) && !isInUse(status)) {
    return RunKind.INSPECT;
  }
  if (status.state !== HostState.MANAGEABLE || !wantsAvailable(pass.spec)) return undefined;
  // The user of the host, or the person in rescue, decides when it may be erased.
  if (isInUse(status)) return undefined;
  if (inventoryNow(pass) === undefined) return RunKind.INSPECT;
  const fault = hardwareFaultOf(status);
  if (fault === undefined) return RunKind.CLEAN;
  return isInspectedSince(status, fault) ? undefined : RunKind.INSPECT;
}

function isInUse(status: PassView['status']): boolean {
  return claimOfUse(status) !== undefined || status.inRescue;
}

const leadsToGoal: ReadonlySet<RunKind> = new Set([
  RunKind.INSPECT,
  RunKind.CLEAN,
  RunKind.PROVISION,
]);

/**
 * Only errors of runs for the goal count: such an error gives the goal up, so a person has checked
 * since. A power command that met another machine must not make that machine this host's
 * automatically.
 */
export function metAnotherMachine({ status }: Pick<PassView, 'status'>): boolean {
  const { failure, runKind = RunKind.UNSPECIFIED } = status.lastError ?? {};
  return failure?.type === FailureType.IDENTITY_MISMATCH && leadsToGoal.has(runKind);
}

/** Whether the last successful verify was of the BMC that the spec now names. */
function isVerified({ spec, record }: PassView): boolean {
  const proved = record.verifiedBmc;
  if (spec.bmc === undefined || proved === undefined) return false;
  return sameMessage(spec.bmc, proved);
}

/** Whether the goal is to keep the host clean and ready; true unless the spec says no. */
export function wantsAvailable(spec: HostSpec | undefined): boolean {
  return spec?.goal !== HostGoal.MANAGEABLE && spec?.retired !== true;
}

/**
 * A failed goal waits for its next attempt, and a given-up goal for a person; a changed credential
 * permits another attempt at once.
 */
export function mayRetryGoal(pass: PassView): boolean {
  const backoff = pass.status.backoff;
  if (backoff === undefined) return true;
  if (pass.snapshot.credentialVersion !== pass.record.failedCredentialVersion) return true;
  if (isGivenUp(backoff)) return false;
  return isRetryDue(pass);
}

export const reviewReason = 'the store was restored: check whether the host is in use, then retry';

/** Runs that switch or erase a host. A verify of its BMC is harmless and does not wait. */
const reviewed: ReadonlySet<RunKind | undefined> = new Set([
  RunKind.INSPECT,
  RunKind.CLEAN,
  RunKind.RELEASE,
  RunKind.DELETE,
]);

/**
 * Whether the next run of the goal or of a deletion waits until a person has checked
 * (`restored.ts`, G3): shown as a given-up goal, regardless of other attempts.
 */
export function holdForReview(
  { record, status }: Pass,
  kind: RunKind | undefined,
): 'held' | 'free' {
  if (record.lookFirstSince === undefined || !reviewed.has(kind)) return 'free';
  if (status.backoff?.lookFirst !== true) {
    status.backoff = create(GoalBackoffSchema, {
      givenUp: GivenUpCause.REVIEW,
      givenUpReason: reviewReason,
      lookFirst: true,
    });
  }
  return 'held';
}

/**
 * Counts a run that the goal is about to start. `givenUp`: too many began lately, and the goal is
 * not reached or does not last. A person must find the cause, because each clean wears the disks.
 */
export function countGoalRun(pass: Pass): 'counted' | 'givenUp' {
  const { record, status, snapshot } = pass;
  const { goalRunsMax, goalRunsWithinMs } = snapshot.timing;
  const known = record.goalRuns;
  const sinceMs = known?.since === undefined ? undefined : timestampMs(known.since);
  const isNew = sinceMs === undefined || snapshot.nowMs - sinceMs > goalRunsWithinMs;
  const count = isNew ? 0 : (known?.count ?? 0);
  if (count >= goalRunsMax) {
    const minutes = Math.ceil((snapshot.nowMs - (sinceMs ?? 0)) / 60_000);
    const within = counted(Math.max(1, minutes), 'minute');
    status.backoff = create(GoalBackoffSchema, {
      givenUp: GivenUpCause.TOO_MANY_RUNS,
      givenUpReason: `${counted(count, 'run')} within ${within} did not bring it there to stay`,
    });
    delete record.goalRuns;
    noteCredential(pass);
    return 'givenUp';
  }
  const since = isNew ? timeNow(pass) : known?.since;
  record.goalRuns = create(store.GoalRunsSchema, { ...(since && { since }), count: count + 1 });
  return 'counted';
}

/** The credential at the goal's failure: a different one permits another attempt at once. */
function noteCredential({ record, snapshot }: Pass): void {
  if (snapshot.credentialVersion !== undefined) {
    record.failedCredentialVersion = snapshot.credentialVersion;
  }
}

interface GivenUp {
  readonly kind: GivenUpCause;
  /** For people. */
  readonly text: string;
}

/** Why a goal is not retried automatically; a deletion is never given up. */
function reasonToGiveUp(
  { snapshot, status }: PassView,
  run: RunView,
  failures: number,
): GivenUp | undefined {
  if (run.outcome === RunOutcome.CANCELLED) {
    const text = `${runName(run)} was aborted; ask for the next one`;
    return { kind: GivenUpCause.ABORTED, text };
  }
  const type = run.error?.type ?? FailureType.UNSPECIFIED;
  if (policyOfFailure(type).goal === 'person') {
    const text = `${failureWord(type)} does not go away by itself`;
    return { kind: GivenUpCause.HOPELESS, text };
  }
  const step = currentStep(run);
  if (step?.rerunClass === RerunClass.NEVER_TWICE && step.attempt > 0) {
    const text = `${step.name} never runs twice by itself`;
    return { kind: GivenUpCause.NEVER_TWICE, text };
  }
  if (failures >= snapshot.timing.goalFailuresMax) {
    const text = `${counted(failures, 'attempt')} in a row failed`;
    return { kind: GivenUpCause.TOO_MANY_FAILURES, text };
  }
  const { automaticRecleans } = status;
  const isSpent = automaticRecleans >= snapshot.timing.automaticRecleansMax;
  if (run.kind !== RunKind.CLEAN || !isSpent) return undefined;
  const text = `it has been cleaned again ${counted(automaticRecleans, 'time')} by itself`;
  return { kind: GivenUpCause.RECLEANS_SPENT, text };
}

export function backOff(pass: Pass, run: RunView): void {
  const { status, snapshot, record } = pass;
  const isDeletion = actorKind(readActor(run.requestedBy)) === 'deletion';
  const ofDeletion = run.kind === RunKind.DELETE || isDeletion;
  if (isForced(pass) || (status.deletion !== undefined && !ofDeletion)) {
    delete status.backoff;
    return;
  }
  const failures = (status.backoff?.failures ?? 0) + 1;
  const backoff = create(GoalBackoffSchema, { failures });
  const reason = status.deletion === undefined ? reasonToGiveUp(pass, run, failures) : undefined;
  if (reason !== undefined) {
    backoff.givenUp = reason.kind;
    backoff.givenUpReason = reason.text;
  } else {
    const { goalDelayMs: firstMs, goalDelayMaxMs: delayMsMax } = snapshot.timing;
    const key = `${pass.host.uid}/${record.runCount}`;
    const delayMs = backoffDelayMs({ attempt: failures, firstMs, delayMsMax, key });
    backoff.nextAttemptTime = timeAfter(pass, delayMs);
  }
  status.backoff = backoff;
  noteCredential(pass);
}
