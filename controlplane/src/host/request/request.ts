/** What an accepted request writes. Whether it is accepted stands in `machine-tables.ts`. */
import { clone, create } from '@bufbuild/protobuf';
import { AbortSchema, type Hold, HostSpecSchema, RunKind } from '@rackwright/messages';
import { withApplied } from '../../records/index.ts';
import { isOtherSwitch } from '../bmc/protocols.ts';
import { cancelDelete, isDeletionStanding, remove } from '../deletion/deletion.ts';
import { fencePending, isFenceHold, refusalOfFence, setFences } from '../deletion/fence-hold.ts';
import { tooWeakFor } from '../erasure/device-plan.ts';
import { refused } from '../life/refusal.ts';
import { isRestoredHold } from '../life/restored.ts';
import { cancelOperation } from '../operation/operation.ts';
import { endShutdownWait, shutdownUnderWay } from '../operation/shutdown.ts';
import { keepPower, refusalOfOldDisk } from '../power/pending-power.ts';
import { startRun } from '../run/engine.ts';
import { automaticSteps } from '../run/render.ts';
import {
  activeRun,
  causedBy,
  currentStep,
  hasPassed,
  now,
  runKindName,
  type Turn,
} from '../turn/turn.ts';
import type { HostRequest, Refusal, RequestedStep, Requester } from '../turn/types.ts';
import { confirmPower } from './confirm-power.ts';
import { isCreation } from './request-ids.ts';
import {
  adopt,
  claim,
  hold,
  image,
  release,
  rescue,
  service,
  unclaim,
  workflow,
} from './request-use.ts';
import { refusalOfSteps } from './requested-steps.ts';
import { stepOn } from './step-on.ts';

/** Applies a request, or refuses it for what it says. A run that it starts is of its trace. */
export function foldRequest(turn: Turn, request: HostRequest, by: Requester): Refusal | undefined {
  const before = turn.status.run?.number;
  const refusal = applyRequest(turn, request, by);
  const { run } = turn.status;
  const { traceParent } = by;
  if (run !== undefined && run.number !== before && traceParent !== undefined) {
    run.traceParent = traceParent;
  }
  return refusal;
}

function applyRequest(turn: Turn, request: HostRequest, by: Requester): Refusal | undefined {
  const { requestId } = by;
  turn.record.requestIds = withApplied(turn.record.requestIds, requestId, isCreation);
  if (request.kind === 'delete' && isDeletionStanding(turn, request)) {
    // Another plan than the one that failed: what is edited is tried at once.
    if (request.plan !== undefined) delete turn.status.backoff;
    return undefined;
  }
  const cause = request.kind === 'note' ? request.text : `${request.kind} requested`;
  causedBy(turn, by.actor, cause, requestId);
  return apply(turn, request, by);
}

type Kind = HostRequest['kind'];
type Applies<K extends Kind> = (
  turn: Turn,
  request: HostRequest & { readonly kind: K },
  by: Requester,
) => Refusal | undefined;

const applies: { readonly [K in Kind]: Applies<K> } = {
  verify: (turn, _, by) => start(turn, RunKind.VERIFY, by),
  inspect: (turn, _, by) => start(turn, RunKind.INSPECT, by),
  clean: (turn, { steps }, by) => clean(turn, steps, by),
  service: (turn, { steps }, by) => service(turn, steps, by),
  workflow,
  provision: image,
  reimage: image,
  release: (turn, { reason }, by) => release(turn, reason, by),
  rescue: (turn, { reason }, by) => rescue(turn, reason, by),
  adopt: (turn, { to }, by) => adopt(turn, to, by),
  claim: (turn, { reason }, by) => claim(turn, reason, by),
  unclaim: (turn, { reason }, by) => unclaim(turn, reason, by),
  hold,
  retry: (turn, { poolGaveUp = false }) => retry(turn, poolGaveUp),
  resume: stepOn,
  skip: stepOn,
  cancelDelete: (turn, { reason }, by) => cancelDelete(turn, reason, by),
  powerOff: power,
  powerOn: power,
  powerReset: power,
  skipWait: (turn) => skipWait(turn),
  confirmPower,
  abort: (turn, { reason }, by) => abort(turn, reason, by),
  releaseHold,
  delete: remove,
  update: (turn, request) => update(turn, request),
  note: () => undefined,
};

function apply<K extends Kind>(
  turn: Turn,
  request: HostRequest & { readonly kind: K },
  by: Requester,
): Refusal | undefined {
  return applies[request.kind](turn, request, by);
}

/**
 * What waits for a time or for a person goes on now: the goal, what is under way, and the pool that
 * has given the host up on its image.
 */
function retry(turn: Turn, poolGaveUp: boolean): Refusal | undefined {
  const { status, record } = turn;
  if (!poolGaveUp && !isRetried(turn)) {
    const reason = activeRun(turn.status) === undefined ? 'nothingToDo' : 'busy';
    return refused(turn, reason, whatHelps(turn));
  }
  record.retries += 1n;
  delete status.backoff;
  delete record.operation?.notBefore;
  delete record.call?.notBefore;
  delete record.lookFirstSince;
  status.inRescue = false;
  return undefined;
}

/** Whether anything waits that a retry sets going, or is being tried again at this moment. */
function isRetried({ status, record }: Turn): boolean {
  const { operation, call } = record;
  const isTriedAgain =
    (operation?.transientCount ?? 0) > 0 || operation?.firstConflictTime !== undefined;
  const waits = operation?.notBefore ?? call?.notBefore ?? record.lookFirstSince;
  return status.backoff !== undefined || status.inRescue || waits !== undefined || isTriedAgain;
}

/** Why a retry would change nothing, and what would. */
function whatHelps({ status, host, context }: Turn): string {
  const id = host.name.split('/')[1] ?? '';
  if (activeRun(status) !== undefined) {
    const why = 'its run goes on by itself, or waits for something else';
    return `nothing is to be retried: ${why}; see rackwright host explain ${id}`;
  }
  const failed = status.lastError?.runKind ?? RunKind.UNSPECIFIED;
  const fault = status.faults[0];
  const what =
    failed === RunKind.UNSPECIFIED
      ? 'what you want (verify, inspect, clean, power)'
      : `the ${runKindName(failed)} itself again`;
  const stands = fault === undefined ? '' : `; ${fault.type} stands until ${fault.clearedBy}`;
  const away = context.session === undefined ? '; the agent of its rack is not connected' : '';
  return `nothing of it waits to be retried${stands}${away}; ask for ${what}`;
}

function start(turn: Turn, kind: RunKind, by: Requester): undefined {
  delete turn.status.backoff;
  startRun(turn, kind, by.actor);
}

function clean(turn: Turn, steps: readonly RequestedStep[], by: Requester): Refusal | undefined {
  delete turn.status.backoff;
  if (steps.length === 0) {
    const tooWeak = tooWeakFor(
      turn.host,
      { manual: false, steps: automaticNames(turn) },
      turn.context.fleet,
    );
    if (tooWeak !== undefined) return refused(turn, 'notCertified', tooWeak.message);
    startRun(turn, RunKind.CLEAN, by.actor);
    return undefined;
  }
  const refusal = refusalOfSteps(turn, steps);
  if (refusal !== undefined) return refusal;
  startRun(turn, RunKind.CLEAN, by.actor, steps);
  return undefined;
}

function automaticNames(turn: Turn) {
  return automaticSteps(turn).map(({ step }) => ({ name: step }));
}

/** A reason to boot the old disk stands in the timeline. */
function power(
  turn: Turn,
  request: Extract<HostRequest, { kind: 'powerOn' | 'powerOff' | 'powerReset' }>,
  by: Requester,
): Refusal | undefined {
  const refusal = refusalOfOldDisk(turn, request);
  if (refusal !== undefined) return refusal;
  keepPower(turn, request, by.actor);
  const reason = request.kind === 'powerOff' ? '' : request.bootOldDiskReason;
  if (reason !== '') causedBy(turn, by.actor, `${request.kind} from the old disk: ${reason}`);
  return undefined;
}

/** The attempt that waits is stopped; the next one forces (`shutdown.ts`). */
function skipWait(turn: Turn): Refusal | undefined {
  const run = activeRun(turn.status);
  const step = run?.abort === undefined && run !== undefined ? currentStep(run) : undefined;
  const shutdown = shutdownUnderWay(turn.record, step);
  if (shutdown === undefined || hasPassed(turn, shutdown.deadline)) {
    const why = 'no run of it waits for its system to shut down; let its run go on, or abort it';
    return refused(turn, 'nothingToDo', why);
  }
  endShutdownWait(turn, shutdown);
  cancelOperation(turn);
  return undefined;
}

function abort(turn: Turn, reason: string, by: Requester): undefined {
  const run = activeRun(turn.status);
  if (run !== undefined && run.abort === undefined) {
    run.abort = create(AbortSchema, { by: by.actor, reason, at: now(turn) });
    // What must not be stopped ends first; then the run does.
    if (currentStep(run)?.abortable !== false) cancelOperation(turn);
  }
}

function releaseHold(
  turn: Turn,
  request: Extract<HostRequest, { kind: 'releaseHold' }>,
  by: Requester,
): Refusal | undefined {
  const { hold, reason, physicallyDisconnected = false } = request;
  const { status } = turn;
  const named = (each: Hold) =>
    !isRestoredHold(each) &&
    (hold === '' || hold === each.reason || (hold === fencePending && isFenceHold(each)));
  const kept = status.holds.filter((each) => !named(each));
  const fence = status.holds.find((each) => isFenceHold(each) && !kept.includes(each));
  const refusal = refusalOfFence(turn, fence !== undefined, physicallyDisconnected);
  if (refusal !== undefined) return refusal;
  if (kept.length === status.holds.length) {
    const held = status.holds.map((each) => each.reason).join('; ') || 'none';
    const lost = status.holds.some(isRestoredHold);
    const accept = lost ? `; a restored store is accepted for the whole ${turn.spec.rack}` : '';
    const message = `${turn.host.name} has no such hold; it has: ${held}${accept}`;
    return { code: 'failedPrecondition', reason: lost ? 'restored' : 'nothingToDo', message };
  }
  status.holds = kept;
  if (fence !== undefined) turn.record.fences = [];
  delete status.backoff;
  const why = fence === undefined ? '' : ' (said to be physically disconnected)';
  causedBy(turn, by.actor, `hold released${why}: ${reason}`);
  return undefined;
}

/**
 * A changed BMC is verified as soon as no run holds the host: that is what the goal wants first.
 */
/**
 * Of a host without a BMC nothing proves that what switches it is what its run began with: a word
 * about one thing, or an order for it, would count for another.
 */
function update(
  turn: Turn,
  request: Extract<HostRequest, { kind: 'update' }>,
): Refusal | undefined {
  const run = activeRun(turn.status);
  if (run !== undefined && isOtherSwitch(turn.spec.bmc, request.spec.bmc)) {
    const why = 'what switches a host without a BMC does not change while it has a run';
    const id = turn.host.name.split('/')[1] ?? '';
    const right = `abort the run (rackwright host abort ${id}), and change bmc then`;
    return refused(turn, 'busy', `${why}: ${right}`);
  }
  turn.host.spec = clone(HostSpecSchema, request.spec);
  turn.host.labels = { ...request.labels };
  if (request.fences !== undefined) setFences(turn, request.fences);
  delete turn.status.backoff;
  delete turn.record.powerEnforcement;
  return undefined;
}
