/**
 * Why a request is refused now: by the tables for state and run, by a hold, or because an order
 * lacks something. A refusal names the cause, since when, and what to do instead; it changes
 * nothing (H5).
 */
import { toJson } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import {
  type Hold,
  HoldKind,
  HoldScope,
  type HostRefusalName,
  isPerson,
  isPool,
  isPoolClaim,
} from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import { isOtherSwitch } from '../bmc/protocols.ts';
import { activeRun, type PassView, runName } from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';
import { isSystemHold } from '../pass/system-holds.ts';
import { type KnownRunKind, type State } from '../pass/transitions.ts';
import type { HostRequest, Refusal, RefusalOfHost, Requester, RequestKind } from '../pass/types.ts';
import { stepPosition } from '../run/step-parts.ts';
import { claimedText } from './claim.ts';
import { endsUse } from './ends-use.ts';
import { missingNeedOf, reviewReason } from './goal.ts';
import { requests, requestsDuringRun } from './machine-tables.ts';

/** Requests about the run itself: the host's state does not matter. */
const steering: ReadonlySet<RequestKind> = new Set([
  'abort',
  'resume',
  'skip',
  'skipWait',
  'confirmPower',
]);

const powering: ReadonlySet<RequestKind> = new Set(['powerOn', 'powerOff', 'powerReset']);

/** Requests that order something of the agent. */
const ordering: ReadonlySet<RequestKind> = new Set([
  ...powering,
  'verify',
  'inspect',
  'clean',
  'service',
  'workflow',
  'provision',
  'reimage',
  'release',
  'rescue',
  'adopt',
]);

/** Requests that end or interrupt the present use of the host. */
const interrupting: ReadonlySet<RequestKind> = new Set([
  'clean',
  'provision',
  'reimage',
  'release',
  'service',
  'workflow',
  'rescue',
  'powerOff',
  'powerReset',
  'skipWait',
]);

/** They switch the host or boot something else: only its user may do that. */
const switching: ReadonlySet<RequestKind> = new Set(['powerOn', 'inspect']);

/** A refusal because of the host's state or work. */
export function refuseHost(
  { host }: PassView,
  reason: HostRefusalName,
  text: string,
): RefusalOfHost {
  return { code: 'failedPrecondition', reason, message: `${host.name}: ${text}` };
}

/** Why a request is refused, or undefined. */
export function refusalOf(
  pass: PassView,
  request: HostRequest,
  by: Requester,
): Refusal | undefined {
  const { kind } = request;
  const found = refusedByTables(pass, kind) ?? refusedByPeople(pass, request, by);
  if (found !== undefined) return refuseHost(pass, found.reason, found.text);
  if (ordering.has(kind) && kind !== 'verify' && isSwitchUnproved(pass)) {
    const id = idOf(pass.host.name);
    const why = 'its bmc was changed, and what answers there was not verified';
    return refuseHost(pass, 'notReady', `${why}; verify it first: rackwright host verify ${id}`);
  }
  const lack = startsWork(pass, kind) ? missingNeedOf(pass) : undefined;
  return lack === undefined ? undefined : refuseHost(pass, 'notReady', lack.message);
}

/** No earlier proof would keep the request from switching another machine. */
function isSwitchUnproved({ spec, record }: PassView): boolean {
  return isOtherSwitch(record.verifiedBmc, spec.bmc);
}

interface Why {
  readonly reason: HostRefusalName;
  readonly text: string;
}

function refusedByTables(pass: PassView, kind: RequestKind): Why | undefined {
  const { status } = pass;
  const run = activeRun(status);
  const byState = requests[kind][status.state as State];
  const byRun = run === undefined ? 'accept' : requestsDuringRun[kind][run.kind as KnownRunKind];
  const ofRun = run !== undefined && steering.has(kind);
  const cell = byRun === 'accept' && !ofRun ? byState : byRun;
  // `busy.ts` decides which work prevents a deletion, and whether it still does.
  if (cell === 'accept' || (kind === 'delete' && run !== undefined)) return undefined;
  if (run === undefined || byRun === 'accept') return { reason: 'state', text: cell.refuse };
  return { reason: 'busy', text: `${occupiedText(run)}; ${cell.refuse}` };
}

function refusedByPeople(pass: PassView, request: HostRequest, by: Requester): Why | undefined {
  const { kind } = request;
  const { deletion, claim } = pass.status;
  // `deletion.ts` checks for busy hosts when it records the intent.
  if (kind === 'delete') return undefined;
  if (deletion !== undefined && ordering.has(kind)) {
    const requestedText = `${deletion.by} asked for its deletion ${sinceText(deletion.at)}`;
    return { reason: 'deleting', text: `${requestedText}; take that back first (cancel-delete)` };
  }
  const interrupts = interruptsUse(pass, kind, by);
  if (claim !== undefined && claim.by !== by.actor && interrupts) {
    const isLetThrough = isPoolClaim(claim) && isPerson(by.actor) && !endsUse(pass, request);
    if (!isLetThrough) return { reason: 'claimed', text: claimedText(claim) };
  }
  // G3 of `restored.ts`.
  const waitsForReview = pass.record.lookFirstSince !== undefined;
  if (waitsForReview && isPool(by.actor) && interrupts) {
    return { reason: 'restored', text: reviewReason };
  }
  return refusedByHold(pass, kind);
}

/** Whether it takes the host from its user. */
function interruptsUse(pass: PassView, kind: RequestKind, by: Requester): boolean {
  // A resumed clean erases like any other.
  const erases = kind === 'resume' && activeRun(pass.status) === undefined;
  const switches = switching.has(kind) && isPerson(by.actor);
  return interrupting.has(kind) || erases || switches || endsOthersRun(pass, kind, by);
}

/** The first held scope that the request needs. */
function refusedByHold(pass: PassView, kind: RequestKind): Why | undefined {
  const needed: readonly (readonly [boolean, HoldScope, string])[] = [
    [kind === 'release', HoldScope.RELEASE, 'release'],
    [powering.has(kind), HoldScope.POWER, 'power'],
    [startsWork(pass, kind), HoldScope.WORK, 'work'],
  ];
  for (const [isNeeded, scope, name] of needed) {
    const kept = isNeeded ? holdOf(pass, scope) : undefined;
    if (kept !== undefined) return heldFrom(kept, name);
  }
  return undefined;
}

/** Only an administrator ends a run that the host's user has requested. */
function endsOthersRun(
  { status }: PassView,
  kind: RequestKind,
  { actor, mayEndOthersUse = false }: Requester,
): boolean {
  if (kind !== 'abort' || mayEndOthersUse || !isPerson(actor)) return false;
  return status.claim !== undefined && activeRun(status)?.requestedBy === status.claim.by;
}

/** A retry starts work too, unless a run or a deletion goes on regardless of holds. */
function startsWork(pass: PassView, kind: RequestKind): boolean {
  if (ordering.has(kind)) return true;
  const { status } = pass;
  const starts = kind === 'retry' || kind === 'resume';
  return starts && activeRun(status) === undefined && status.deletion === undefined;
}

/** The first hold of a scope, or undefined. */
export function holdOf({ status }: PassView, scope: HoldScope): Hold | undefined {
  return status.holds.find((hold) => hold.scope === scope);
}

function heldFrom(hold: Hold, scope: string): Why {
  const isFence = isSystemHold(hold, HoldKind.FENCE_PENDING);
  const isRestored = isSystemHold(hold, HoldKind.RESTORED);
  const reason = isFence ? 'fenced' : isRestored ? 'restored' : 'held';
  return { reason, text: holdText(hold, scope) };
}

function holdText({ by, since, until, reason }: Hold, scope: string): string {
  const end = until === undefined ? '' : `, until ${timeText(until)}`;
  const held = `its ${scope} is held by ${by} ${sinceText(since)}${end}: ${reason}`;
  return `${held}; release the hold first`;
}

/** "busy: clean 3 holds the host (at power.off) since …" */
export function occupiedText(run: RunView): string {
  const at = stepPosition(run);
  return `busy: ${runName(run)} holds the host (at ${at}) ${sinceText(run.startTime)}`;
}

function sinceText(time: Timestamp | undefined): string {
  return time === undefined ? 'since an unknown time' : `since ${timeText(time)}`;
}

function timeText(time: Timestamp): string {
  return toJson(TimestampSchema, time);
}
