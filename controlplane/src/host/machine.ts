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
import { create } from '@bufbuild/protobuf';
import {
  HoldScope,
  HostErrorSchema,
  HostState,
  type Run,
  RunKind,
  RunOutcome,
  type store,
} from '@rackwright/api';
import { erasesAsAsked, lastCleaned } from './certify.ts';
import { leavePlaces } from './brake.ts';
import { foldDeadlines } from './deadlines.ts';
import { driveRun, startRun } from './engine.ts';
import { clearFault, setFault } from './fault.ts';
import { foldForgotten, foldHello, foldReport } from './fold.ts';
import { backOff, hasWhatRunsNeed, isDue, mayTryAgain, wantedRun, wantsAvailable } from './goal.ts';
import { type Kind, type Landing, landings, type Outcome, type State } from './machine-tables.ts';
import { sendForOthers } from './operation.ts';
import { endHolds } from './holds.ts';
import { holdOf, refusalOf } from './refusal.ts';
import { foldRequest } from './request.ts';
import { guardRestored } from './restored.ts';
import { activeRun, beginTurn, causedBy, now, runKindName, runName, type Turn } from './turn.ts';
import type {
  HostContext,
  HostEvent,
  HostOutcome,
  Refusal,
  RequestedStep,
  Requester,
} from './types.ts';

/** One pass over a host: fold the event in, then deadlines, then what is wanted. */
export function step(
  record: store.HostRecord,
  event: HostEvent,
  context: HostContext,
): HostOutcome {
  const turn = beginTurn(record, context);
  endHolds(turn);
  guardRestored(turn, event);
  const refusal = fold(turn, event);
  if (refusal !== undefined) return { kind: 'refused', refusal };
  foldDeadlines(turn);
  proceed(turn);
  leavePlaces(turn);
  if (turn.removed) return { kind: 'removed', effects: turn.effects };
  return { kind: 'kept', record: turn.record, effects: turn.effects };
}

function fold(turn: Turn, event: HostEvent): Refusal | undefined {
  switch (event.kind) {
    case 'tick':
      return undefined;
    case 'written':
      sendForOthers(turn);
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
    case 'request':
      if (isRepeated(turn, event.by)) return undefined;
      return refusalOf(turn, event.request, event.by) ?? foldRequest(turn, event.request, event.by);
  }
}

/** A request id that was applied before answers the same and changes nothing. */
function isRepeated(turn: Turn, { requestId = '' }: Requester): boolean {
  return requestId !== '' && turn.record.requestIds.includes(requestId);
}

/** Turns that a single pass may take; more would be a loop in the tables. */
const passesMax = 8;

/** Drives the run, lands it when it ends, and starts what is wanted next. */
function proceed(turn: Turn): void {
  for (let pass = 0; pass < passesMax && !turn.removed; pass++) {
    const run = activeRun(turn.status);
    if (run !== undefined) driveRun(turn, run);
    if (turn.ended !== undefined) {
      land(turn, turn.ended);
      turn.ended = undefined;
    } else if (run !== undefined) {
      return;
    } else {
      leaveUnwanted(turn);
      if (!startWanted(turn)) return;
    }
  }
}

/** A host that is known to be on, and whose BMC we know, is switched off before it is forgotten. */
function stepsBeforeRemoval({ status, context }: Turn): RequestedStep[] {
  const mayBeOn = status.poweredOn === true && status.bmcIdentity !== undefined;
  const ours = status.state !== HostState.EXTERNAL && status.state !== HostState.PROVISIONED;
  const can = context.agentRegistered && context.credentialVersion !== undefined;
  return mayBeOn && ours && can ? [{ step: 'power.off', arguments: {} }] : [];
}

/** An available host whose goal is less is kept ready no longer; what was erased stays erased. */
function leaveUnwanted(turn: Turn): void {
  const { status } = turn;
  if (status.state !== HostState.AVAILABLE || wantsAvailable(turn)) return;
  status.state = HostState.MANAGEABLE;
  status.useEpoch += 1n;
  causedBy(turn, 'system', 'no longer available: its goal is manageable');
}

/** Deletion first, then holds, then a power request, then the goal. Whether a run was started. */
function startWanted(turn: Turn): boolean {
  const { status, record } = turn;
  if (status.deletion !== undefined) {
    if (!isDue(turn)) return false;
    startRun(turn, RunKind.DELETE, status.deletion.by, stepsBeforeRemoval(turn));
    return true;
  }
  if (holdOf(turn, HoldScope.WORK) !== undefined) return false;
  if (record.pendingPower !== undefined) {
    if (!hasWhatRunsNeed(turn)) return false;
    const { by, steps } = record.pendingPower;
    delete record.pendingPower;
    startRun(
      turn,
      RunKind.POWER,
      by,
      steps.map((step) => ({ step, arguments: {} })),
    );
    return true;
  }
  const kind = wantedRun(turn);
  if (kind === undefined || !mayTryAgain(turn)) return false;
  if (!hasWhatRunsNeed(turn)) return false;
  startRun(turn, kind, 'goal');
  causedBy(turn, 'system', `${runName(status.run as Run)} started towards the goal`);
  return true;
}

/** Applies the landing of a run that has just ended. */
function land(turn: Turn, run: Run): void {
  const landing = landings[run.kind as Kind][run.outcome as Outcome];
  const { status } = turn;
  status.state = landingState(turn, run, landing);
  if (landing.disks === 'dirty') status.dirty = true;
  if (landing.disks === 'clean' && erasesAsAsked(turn, run)) status.dirty = false;
  if (run.outcome === RunOutcome.SUCCEEDED) landWell(turn, run);
  else landBadly(turn, run, landing);
  if (status.state === HostState.GONE) turn.removed = true;
}

function landingState(turn: Turn, run: Run, landing: Landing): State {
  const before = turn.status.state as State;
  switch (landing.to) {
    case 'same':
      return before;
    case 'proved':
      return before === HostState.NEW ? HostState.MANAGEABLE : before;
    case 'adopted':
      return turn.record.adoptTo as State;
    case 'goal':
      return wantsAvailable(turn) && !run.manual ? HostState.AVAILABLE : HostState.MANAGEABLE;
    default:
      return landing.to;
  }
}

function landWell(turn: Turn, run: Run): void {
  const { status } = turn;
  const cleaned = run.kind === RunKind.CLEAN ? lastCleaned(turn, run) : undefined;
  if (cleaned !== undefined) status.lastCleaned = cleaned;
  const towardsGoal = run.kind !== RunKind.POWER;
  const sameWork = status.lastError?.run.startsWith(`${runKindName(run.kind)} `) === true;
  if (towardsGoal) delete status.backoff;
  if (towardsGoal || sameWork) delete status.lastError;
  for (const outcome of [RunOutcome.FAILED, RunOutcome.TIMED_OUT] as const) {
    const { fault } = landings[run.kind as Kind][outcome];
    if (fault !== undefined) clearFault(turn, fault);
  }
  causedBy(turn, 'system', `${runName(run)} succeeded`);
}

function landBadly(turn: Turn, run: Run, landing: Landing): void {
  const { status } = turn;
  const cause = run.error?.message ?? outcomeName(run.outcome);
  causedBy(turn, run.abort?.by ?? 'system', `${runName(run)} ended: ${cause}`);
  // A power command that fails is a fault of its own; why the goal waits must stay to be read.
  const hidesGoal = run.kind === RunKind.POWER && status.backoff !== undefined;
  if (run.error !== undefined && !hidesGoal) {
    status.lastError = create(HostErrorSchema, {
      failure: run.error,
      time: now(turn),
      run: runName(run),
    });
  }
  if (landing.fault !== undefined) {
    setFault(turn, landing.fault, cause, `a ${runName(run).split(' ')[0]} run that succeeds`);
  }
  if (run.kind !== RunKind.POWER) backOff(turn, run);
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
