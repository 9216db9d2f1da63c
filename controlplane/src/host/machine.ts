/**
 * The host's life: six stable states, runs that lead from one to another, and what people may ask
 * when: the tables of `machine-tables.ts`, and the one pure function `step` (DESIGN §4).
 *
 * Invariants:
 * H1 `step` reads nothing but its arguments and changes none of them.
 * H2 A host has at most one run that has not ended, for it is one field of the record.
 * H3 A run that has ended never changes again; a late report changes nothing (R7).
 * H4 An operation is in the record before it is sent, with the journal it goes to (R3, R9).
 * H5 A refused request changes nothing.
 * H6 `available` is entered only by a clean whose every device is certified for this use epoch.
 */

import { HoldScope, HostState, type Run, type store } from '@rackwright/messages';
import { hasApplied, sameMessage } from '../records/index.ts';
import { raiseFaults } from './bmc/health.ts';
import { driveDeletion, foldForce, leaveRemains } from './deletion/deletion.ts';
import { foldFences } from './deletion/fence-hold.ts';
import { noteNetbootAccess } from './deployment/netboot-access.ts';
import { hardwareFaultOf, noteBootMacs } from './erasure/hardware.ts';
import { isDue, stayDue } from './erasure/power-cycle.ts';
import { foldDeadlines } from './events/deadlines.ts';
import { foldReport } from './events/fold.ts';
import { foldCall } from './events/fold-call.ts';
import { foldForgotten, foldHello } from './events/fold-hello.ts';
import { land } from './events/landing.ts';
import { notePlan, refusalOfPlan } from './foresee/plan-check.ts';
import {
  hasWhatRunsNeed,
  mayTryAgain,
  waitsForLook,
  wantedRun,
  wantsAvailable,
} from './life/goal.ts';
import { endHolds } from './life/holds.ts';
import { foldNewer } from './life/newer.ts';
import { holdOf, refusalOf } from './life/refusal.ts';
import { guardRestored } from './life/restored.ts';
import { leaveUp, takeOver } from './life/shared-boot.ts';
import { isAgentGone } from './life/stuck.ts';
import { callAgain } from './operation/calls.ts';
import { askToForget, repeatCancel } from './operation/operation.ts';
import { withdrawHandOffs } from './operation/settled.ts';
import { startPower } from './power/pending-power.ts';
import { enforcePower, notePowerMismatch } from './power/power-policy.ts';
import { foldRequest } from './request/request.ts';
import { endStay } from './request/resume-failed.ts';
import { driveRun, startRun } from './run/engine.ts';
import { leavePlaces } from './turn/brake.ts';
import { move } from './turn/transitions.ts';
import { activeRun, beginTurn, causedBy, goal, runName, type Turn } from './turn/turn.ts';
import type {
  HostContext,
  HostEvent,
  HostOutcome,
  HostRequest,
  Refusal,
  Requester,
} from './turn/types.ts';

/** One pass over a host: fold the event in, then deadlines, then what is wanted. */
export function step(
  record: store.HostRecord,
  event: HostEvent,
  context: HostContext,
): HostOutcome {
  const turn = beginTurn(record, context);
  const left = foldNewer(turn, event);
  if (left !== undefined) return left;
  endHolds(turn);
  foldFences(turn);
  guardRestored(turn, event);
  const refusal = fold(turn, event);
  if (refusal !== undefined) return { kind: 'refused', refusal };
  foldForce(turn);
  foldDeadlines(turn);
  proceed(turn);
  repeatCancel(turn);
  withdrawHandOffs(turn, event.kind === 'report' ? event.report.operationId : undefined);
  raiseFaults(turn);
  noteNetbootAccess(turn);
  const run = activeRun(turn.status);
  leavePlaces(turn, run !== undefined && isAgentGone(turn, run));
  if (turn.removed) return { kind: 'removed', record: turn.record, effects: turn.effects };
  notePowerMismatch(turn);
  keepDisplaced(turn, record);
  return { kind: 'kept', record: turn.record, effects: turn.effects };
}

function fold(turn: Turn, event: HostEvent): Refusal | undefined {
  switch (event.kind) {
    case 'tick':
      askToForget(turn);
      callAgain(turn);
      return undefined;
    case 'written':
      askToForget(turn);
      return undefined;
    case 'report':
      foldReport(turn, event.report);
      return undefined;
    case 'hello':
      if (turn.context.restored !== undefined) return undefined;
      foldHello(turn, event.journal, event.listed, event.grants);
      return undefined;
    case 'forgotten':
      foldForgotten(turn);
      return undefined;
    case 'webhookResult':
      foldCall(turn, event.id, event.result);
      return undefined;
    case 'request':
      if (hasApplied(turn.record, event.by.requestId)) return undefined;
      return foldAsked(turn, event.request, event.by);
  }
}

/** A plan that does not hold any more says more than where the host stands now. */
function foldAsked(turn: Turn, request: HostRequest, by: Requester): Refusal | undefined {
  const refusal = refusalOfPlan(turn, request) ?? refusalOf(turn, request, by);
  if (refusal !== undefined) return refusal;
  const wrong = foldRequest(turn, request, by);
  if (wrong === undefined) notePlan(turn, request, by);
  return wrong;
}

/**
 * Runs that have ended and were followed by another one in the same turn. Before the record changes
 * next, whoever writes it has given those a record of their own (`finished-runs.ts`).
 */
function keepDisplaced({ record, displaced }: Turn, before: store.HostRecord): void {
  if (displaced.length > 0) record.finishedRuns = displaced;
  else if (record.finishedRuns.length > 0 && !sameMessage(record, before)) {
    record.finishedRuns = [];
  }
}

/** Turns that a single pass may take; more would be a loop in the tables. */
const passesMax = 8;

/** Drives the run, lands it when it ends, and starts what is wanted next. */
function proceed(turn: Turn): void {
  for (let pass = 0; pass < passesMax && !turn.removed; pass++) {
    const run = activeRun(turn.status);
    if (run !== undefined) {
      leaveUp(turn, run);
      driveRun(turn, run);
    }
    if (turn.ended !== undefined) {
      land(turn, turn.ended);
      turn.ended = undefined;
      if (turn.status.state === HostState.GONE) {
        leaveRemains(turn);
        turn.removed = true;
      }
    } else if (run !== undefined) {
      return;
    } else {
      leaveUnwanted(turn);
      leaveChanged(turn);
      if (startWanted(turn)) continue;
      if (!leaveSwitchedOn(turn)) return;
    }
  }
}

/** An available host whose goal is less is kept ready no longer; what was erased stays erased. */
function leaveUnwanted(turn: Turn): void {
  const { status } = turn;
  if (status.state !== HostState.AVAILABLE || wantsAvailable(turn.spec)) return;
  const wasDue = isDue(turn);
  move(status, 'unwanted');
  if (wasDue) stayDue(turn);
  causedBy(turn, 'system', 'no longer available: its goal is manageable');
}

/** What was inspected and certified is not what is in the host now, or how it boots. */
function leaveChanged(turn: Turn): void {
  const { status } = turn;
  noteBootMacs(turn);
  const fault = hardwareFaultOf(status);
  if (fault === undefined || status.state !== HostState.AVAILABLE) return;
  move(status, 'changed');
  causedBy(turn, 'system', `no longer available: ${fault.message}`);
}

/**
 * An available host is off. One that a failed run left on, and that is not switched off at once,
 * may have been started anew by somebody: what it booted then nobody saw. Whether it was so.
 */
function leaveSwitchedOn(turn: Turn): boolean {
  const { status } = turn;
  if (status.state !== HostState.AVAILABLE || status.poweredOn !== true) return false;
  move(status, 'used');
  causedBy(turn, 'system', 'no longer available: it is on, and nothing switches it off');
  return true;
}

/** Deletion first, then holds, then a power request, then the goal. Whether a run was started. */
function startWanted(turn: Turn): boolean {
  const { status, record } = turn;
  if (status.deletion !== undefined) return driveDeletion(turn);
  if (holdOf(turn, HoldScope.WORK) !== undefined) return false;
  if (record.pendingPower !== undefined && holdOf(turn, HoldScope.POWER) === undefined) {
    if (!hasWhatRunsNeed(turn)) return false;
    if (startPower(turn, record.pendingPower)) return true;
  }
  const kind = wantedRun(turn);
  if (waitsForLook(turn, kind)) return false;
  if (kind === undefined || !mayTryAgain(turn)) return endStay(turn) || enforcePower(turn);
  if (!hasWhatRunsNeed(turn)) return false;
  startRun(turn, kind, goal);
  takeOver(turn, status.run as Run);
  causedBy(turn, 'system', `${runName(status.run as Run)} started towards the goal`);
  return true;
}
