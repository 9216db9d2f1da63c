/**
 * The host's life: six stable states, the runs between them, and the requests at each point (the
 * tables of `machine-tables.ts`), with the one pure function `decideHost` (DESIGN §4).
 *
 * Invariants:
 * H1 `decideHost` reads nothing but its arguments and changes none of them.
 * H2 A host has at most one unfinished run, because it is one field of the record.
 * H3 A finished run never changes again; a late report changes nothing (R7).
 * H4 An operation is in the record before it is sent, with the journal it goes to (R3, R9).
 * H5 A refused request changes nothing.
 * H6 `available` is entered only by a clean whose every device is certified for this use epoch. A
 *    host whose provision has left each of those certificates in force returns to it.
 */

import { actors, HoldScope, HostState, type Run, type store } from '@rackwright/messages';
import { hasApplied, sameMessage } from '../records/index.ts';
import { raiseFaults } from './bmc/health.ts';
import { driveDeletion, foldForce, recordRemains } from './deletion/deletion.ts';
import { foldFences } from './deletion/fence-hold.ts';
import { noteNetbootAccess } from './deployment/netboot-access.ts';
import { hardwareFaultOf, noteBootMacs } from './erasure/hardware.ts';
import { isRereadingDue, keepRereadingDue } from './erasure/power-cycle.ts';
import { foldDeadlines } from './events/deadlines.ts';
import { foldReport } from './events/fold.ts';
import { foldCall } from './events/fold-call.ts';
import { foldForgotten, foldHello } from './events/fold-hello.ts';
import { applyRunEnd } from './events/landing.ts';
import { notePlan, refusalOfPlan } from './foresee/plan-check.ts';
import {
  countGoalRun,
  holdForReview,
  mayRetryGoal,
  noteMissingNeeds,
  wantedRun,
  wantsAvailable,
} from './life/goal.ts';
import { endHolds } from './life/holds.ts';
import { foldNewer } from './life/newer.ts';
import { holdOf, refusalOf } from './life/refusal.ts';
import { guardedSnapshot, guardRestored } from './life/restored.ts';
import { keepOnForClean, takeOver } from './life/shared-boot.ts';
import { isAgentGone } from './life/stuck.ts';
import { callAgain } from './operation/calls.ts';
import { askToForget, repeatCancel } from './operation/operation.ts';
import { withdrawHandOffs } from './operation/settled.ts';
import { releaseSlots } from './pass/brake.ts';
import { activeRun, beginPass, type Pass, recordCause, runName } from './pass/pass.ts';
import { move } from './pass/transitions.ts';
import type {
  HostDecision,
  HostEvent,
  HostRequest,
  HostSnapshot,
  Refusal,
  Requester,
} from './pass/types.ts';
import { startPower } from './power/pending-power.ts';
import { enforcePower, notePowerMismatch } from './power/power-policy.ts';
import { foldRequest } from './request/request.ts';
import { endRunnerStay } from './request/resume-failed.ts';
import { driveRun, startRun } from './run/engine.ts';

/** One pass over a host: fold the event in, then check deadlines, then start what is wanted. */
export function decideHost(
  record: store.HostRecord,
  event: HostEvent,
  snapshot: HostSnapshot,
): HostDecision {
  const pass = beginPass(record, guardedSnapshot(record, event, snapshot));
  const left = foldNewer(pass, event);
  if (left !== undefined) return left;
  endHolds(pass);
  foldFences(pass);
  guardRestored(pass, event);
  const refusal = fold(pass, event);
  if (refusal !== undefined) return { kind: 'refused', refusal };
  foldForce(pass);
  foldDeadlines(pass);
  proceed(pass);
  repeatCancel(pass);
  withdrawHandOffs(pass, event.kind === 'report' ? event.report.operationId : undefined);
  raiseFaults(pass);
  noteNetbootAccess(pass);
  const run = activeRun(pass.status);
  releaseSlots(pass, run !== undefined && isAgentGone(pass, run));
  if (pass.removed) return { kind: 'removed', record: pass.record, effects: pass.effects };
  notePowerMismatch(pass);
  keepDisplaced(pass, record);
  return { kind: 'kept', record: pass.record, effects: pass.effects };
}

function fold(pass: Pass, event: HostEvent): Refusal | undefined {
  switch (event.kind) {
    case 'tick':
      askToForget(pass);
      callAgain(pass);
      return undefined;
    case 'written':
      askToForget(pass);
      return undefined;
    case 'report':
      foldReport(pass, event.report);
      return undefined;
    case 'hello':
      if (pass.snapshot.restored !== undefined) return undefined;
      foldHello(pass, event.journal, event.listed, event.grants);
      return undefined;
    case 'forgotten':
      foldForgotten(pass);
      return undefined;
    case 'webhookResult':
      foldCall(pass, event.id, event.result);
      return undefined;
    case 'request':
      if (hasApplied(pass.record, event.by.requestId)) return undefined;
      return foldAsked(pass, event.request, event.by);
  }
}

/** An invalid plan is a more specific reason than the host's state. */
function foldAsked(pass: Pass, request: HostRequest, by: Requester): Refusal | undefined {
  const refusal = refusalOfPlan(pass, request) ?? refusalOf(pass, request, by);
  if (refusal !== undefined) return refusal;
  const wrong = foldRequest(pass, request, by);
  if (wrong === undefined) notePlan(pass, request, by);
  return wrong;
}

/**
 * Finished runs that were followed by another one in the same pass. Before the next change of the
 * record, its writer stores each of them in a record of its own (`finished-runs.ts`).
 */
function keepDisplaced({ record, displaced }: Pass, before: store.HostRecord): void {
  if (displaced.length > 0) record.finishedRuns = displaced;
  else if (record.finishedRuns.length > 0 && !sameMessage(record, before)) {
    record.finishedRuns = [];
  }
}

/** The most rounds of a single pass; more would be a loop in the tables. */
const roundsMax = 8;

/** Advances the run, lands it when it ends, and starts what is wanted next. */
function proceed(pass: Pass): void {
  for (let round = 0; round < roundsMax && !pass.removed; round++) {
    const run = activeRun(pass.status);
    if (run !== undefined) {
      keepOnForClean(pass, run);
      driveRun(pass, run);
    }
    if (pass.ended !== undefined) {
      applyRunEnd(pass, pass.ended);
      pass.ended = undefined;
      if (pass.status.state === HostState.GONE) {
        recordRemains(pass);
        pass.removed = true;
      }
    } else if (run !== undefined) {
      return;
    } else {
      endUnwantedReadiness(pass);
      endReadinessOfChanged(pass);
      if (startWanted(pass)) continue;
      if (!endReadinessOfSwitchedOn(pass)) return;
    }
  }
}

/**
 * An available host with a lesser goal is no longer kept ready. Its disks stay erased; their
 * certificates end with this use.
 */
function endUnwantedReadiness(pass: Pass): void {
  const { status } = pass;
  if (status.state !== HostState.AVAILABLE || wantsAvailable(pass.spec)) return;
  const wasDue = isRereadingDue(pass);
  move(status, 'unwanted');
  if (wasDue) keepRereadingDue(pass);
  recordCause(pass, actors.system, 'no longer available: its goal is manageable');
}

/**
 * The host's present hardware differs from the inspected and certified one, or from what it boots
 * from.
 */
function endReadinessOfChanged(pass: Pass): void {
  const { status } = pass;
  noteBootMacs(pass);
  const fault = hardwareFaultOf(status);
  if (fault === undefined || status.state !== HostState.AVAILABLE) return;
  move(status, 'changed');
  recordCause(pass, actors.system, `no longer available: ${fault.message}`);
}

/**
 * An available host is off. If a failed run left it on, and it is not switched off at once,
 * somebody may have restarted it, and what it booted is unknown. True: that was the case.
 */
function endReadinessOfSwitchedOn(pass: Pass): boolean {
  const { status } = pass;
  if (status.state !== HostState.AVAILABLE || status.poweredOn !== true) return false;
  move(status, 'used');
  recordCause(pass, actors.system, 'no longer available: it is on, and nothing switches it off');
  return true;
}

/**
 * Deletion first, then holds, then a power request, then the goal. True: a run was started.
 */
function startWanted(pass: Pass): boolean {
  const { status, record } = pass;
  if (status.deletion !== undefined) return driveDeletion(pass);
  if (holdOf(pass, HoldScope.WORK) !== undefined) return false;
  if (record.pendingPower !== undefined && holdOf(pass, HoldScope.POWER) === undefined) {
    if (noteMissingNeeds(pass) === 'missing') return false;
    if (startPower(pass, record.pendingPower)) return true;
  }
  const kind = wantedRun(pass);
  if (holdForReview(pass, kind) === 'held') return false;
  if (kind === undefined || !mayRetryGoal(pass)) return endRunnerStay(pass) || enforcePower(pass);
  if (noteMissingNeeds(pass) === 'missing') return false;
  if (countGoalRun(pass) === 'givenUp') return false;
  startRun(pass, kind, actors.goal);
  takeOver(pass, status.run as Run);
  recordCause(pass, actors.system, `${runName(status.run as Run)} started towards the goal`);
  return true;
}
