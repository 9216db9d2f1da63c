/** The changes of an accepted request. `machine-tables.ts` decides whether it is accepted. */
import { clone, create } from '@bufbuild/protobuf';
import { AbortSchema, type Hold, HostSpecSchema, isPool, RunKind } from '@rackwright/messages';
import { idOf, withApplied } from '../../records/index.ts';
import { isOtherSwitch } from '../bmc/protocols.ts';
import { cancelDelete, isDeletionRequested, requestDeletion } from '../deletion/deletion.ts';
import { isFenceHold, refusalOfFence, setFences } from '../deletion/fence-hold.ts';
import { tooWeakFor } from '../erasure/device-plan.ts';
import { refuseHost } from '../life/refusal.ts';
import { isRestoredHold } from '../life/restored.ts';
import { cancelOperation } from '../operation/operation.ts';
import { endShutdownWait, shutdownUnderWay } from '../operation/shutdown.ts';
import {
  activeRun,
  currentStep,
  hasPassed,
  type Pass,
  type PassView,
  recordCause,
  runKindName,
  timeNow,
} from '../pass/pass.ts';
import type { HostRequest, Refusal, RequestedStep, Requester } from '../pass/types.ts';
import { keepPower, oldDiskPermission, refusalOfOldDisk } from '../power/pending-power.ts';
import { startRun } from '../run/engine.ts';
import { automaticSteps } from '../run/render.ts';
import { confirmPower } from './confirm-power.ts';
import { isNamed } from './named-hold.ts';
import { isCreation } from './request-ids.ts';
import {
  requestAdoption,
  requestClaim,
  requestDeployment,
  requestHold,
  requestRelease,
  requestRescue,
  requestService,
  requestUnclaim,
  requestWorkflow,
} from './request-use.ts';
import { refusalOfSteps } from './requested-steps.ts';
import { stepOn } from './step-on.ts';

/**
 * Applies a request, or refuses it because of its content. A run that it starts belongs to its
 * trace.
 */
export function foldRequest(pass: Pass, request: HostRequest, by: Requester): Refusal | undefined {
  const before = pass.status.run?.number;
  const refusal = applyRequest(pass, request, by);
  const { run } = pass.status;
  const { traceParent } = by;
  if (run !== undefined && run.number !== before && traceParent !== undefined) {
    run.traceParent = traceParent;
  }
  return refusal;
}

function applyRequest(pass: Pass, request: HostRequest, by: Requester): Refusal | undefined {
  const { requestId } = by;
  if (requestId === undefined && isAborting(pass, request)) return undefined;
  pass.record.requestIds = withApplied(pass.record.requestIds, requestId, isCreation);
  if (request.kind === 'delete' && isDeletionRequested(pass, request)) {
    const hasChecked = pass.record.lookFirstSince !== undefined;
    // The plan differs from the failed one: an edited plan is tried at once.
    if (request.plan !== undefined || hasChecked) delete pass.status.backoff;
    // Who asks for it again has checked (`restored.ts`, G3).
    if (hasChecked) recordCause(pass, by.actor, 'delete requested again', requestId);
    delete pass.record.lookFirstSince;
    return undefined;
  }
  const cause = request.kind === 'note' ? request.text : `${request.kind} requested`;
  recordCause(pass, by.actor, cause, requestId);
  // A person who sends a request has seen the host. A pool has not: it may be what undoes the goal
  // repeatedly.
  if (!isPool(by.actor)) delete pass.record.goalRuns;
  return apply(pass, request, by);
}

/**
 * A repeated abort writes nothing. A write would wake a caller that repeats it at each pass, and so
 * without end.
 */
function isAborting({ status }: PassView, { kind }: HostRequest): boolean {
  return kind === 'abort' && activeRun(status)?.abort !== undefined;
}

type Kind = HostRequest['kind'];
type Applies<K extends Kind> = (
  pass: Pass,
  request: HostRequest & { readonly kind: K },
  by: Requester,
) => Refusal | undefined;

const applies: { readonly [K in Kind]: Applies<K> } = {
  verify: (pass, _, by) => start(pass, RunKind.VERIFY, by),
  inspect: (pass, _, by) => start(pass, RunKind.INSPECT, by),
  clean: (pass, { steps }, by) => clean(pass, steps, by),
  service: (pass, { steps }, by) => requestService(pass, steps, by),
  workflow: requestWorkflow,
  provision: requestDeployment,
  reimage: requestDeployment,
  release: (pass, { reason }, by) => requestRelease(pass, reason, by),
  rescue: (pass, { reason }, by) => requestRescue(pass, reason, by),
  adopt: (pass, { to }, by) => requestAdoption(pass, to, by),
  claim: (pass, { reason }, by) => requestClaim(pass, reason, by),
  unclaim: (pass, { reason }, by) => requestUnclaim(pass, reason, by),
  hold: requestHold,
  retry: (pass, { poolGaveUp = false }) => retry(pass, poolGaveUp),
  resume: stepOn,
  skip: stepOn,
  cancelDelete: (pass, { reason }, by) => cancelDelete(pass, reason, by),
  powerOff: power,
  powerOn: power,
  powerReset: power,
  skipWait: (pass) => skipWait(pass),
  confirmPower,
  abort: (pass, { reason }, by) => abort(pass, reason, by),
  releaseHold,
  delete: requestDeletion,
  update: (pass, request) => update(pass, request),
  note: () => undefined,
};

function apply<K extends Kind>(
  pass: Pass,
  request: HostRequest & { readonly kind: K },
  by: Requester,
): Refusal | undefined {
  return applies[request.kind](pass, request, by);
}

/**
 * Work that waits for a time or for a person goes on now: the goal, work in progress, and the pool
 * that has given up on deploying its image to the host.
 */
function retry(pass: Pass, poolGaveUp: boolean): Refusal | undefined {
  const { status, record } = pass;
  if (!poolGaveUp && !isRetried(pass)) {
    const reason = activeRun(pass.status) === undefined ? 'nothingToDo' : 'busy';
    return refuseHost(pass, reason, whatHelps(pass));
  }
  record.retries += 1n;
  delete status.backoff;
  delete record.operation?.notBefore;
  delete record.call?.notBefore;
  delete record.lookFirstSince;
  status.inRescue = false;
  return undefined;
}

/** Whether a retry would start anything, or a retry is in progress now. */
function isRetried({ status, record }: PassView): boolean {
  const { operation, call } = record;
  const isTriedAgain =
    (operation?.transientCount ?? 0) > 0 || operation?.firstConflictTime !== undefined;
  const waits = operation?.notBefore ?? call?.notBefore ?? record.lookFirstSince;
  return status.backoff !== undefined || status.inRescue || waits !== undefined || isTriedAgain;
}

/** Why a retry would change nothing, and what would help. */
function whatHelps({ status, host, snapshot }: PassView): string {
  const id = idOf(host.name);
  if (activeRun(status) !== undefined) {
    const why = 'its run goes on by itself, or waits for something else';
    return `nothing is to be retried: ${why}; see rackwright host explain ${id}`;
  }
  const failed = status.lastError?.runKind ?? RunKind.UNSPECIFIED;
  const fault = status.faults[0];
  const problem =
    failed === RunKind.UNSPECIFIED
      ? 'what you want (verify, inspect, clean, power)'
      : `the ${runKindName(failed)} itself again`;
  const faultNote = fault === undefined ? '' : `; ${fault.type} stands until ${fault.clearedBy}`;
  const away = snapshot.session === undefined ? '; the agent of its rack is not connected' : '';
  return `nothing of it waits to be retried${faultNote}${away}; ask for ${problem}`;
}

function start(pass: Pass, kind: RunKind, by: Requester): undefined {
  delete pass.status.backoff;
  startRun(pass, kind, by.actor);
}

function clean(pass: Pass, steps: readonly RequestedStep[], by: Requester): Refusal | undefined {
  delete pass.status.backoff;
  if (steps.length === 0) {
    const tooWeak = tooWeakFor(
      pass.host,
      { manual: false, steps: automaticNames(pass) },
      pass.snapshot.fleet,
    );
    if (tooWeak !== undefined) return refuseHost(pass, 'notCertified', tooWeak.message);
    startRun(pass, RunKind.CLEAN, by.actor);
    return undefined;
  }
  const refusal = refusalOfSteps(pass, steps);
  if (refusal !== undefined) return refusal;
  startRun(pass, RunKind.CLEAN, by.actor, steps);
  return undefined;
}

function automaticNames(pass: PassView) {
  return automaticSteps(pass).map(({ step }) => ({ name: step }));
}

/** The timeline has the reason to boot the old disk. */
function power(
  pass: Pass,
  request: Extract<HostRequest, { kind: 'powerOn' | 'powerOff' | 'powerReset' }>,
  by: Requester,
): Refusal | undefined {
  const refusal = refusalOfOldDisk(pass, request);
  if (refusal !== undefined) return refusal;
  keepPower(pass, request, by.actor);
  const permission = oldDiskPermission(request);
  if (permission !== undefined) {
    recordCause(pass, by.actor, `${request.kind} from the old disk: ${permission.reason}`);
  }
  return undefined;
}

/** The waiting attempt is stopped; the next one forces (`shutdown.ts`). */
function skipWait(pass: Pass): Refusal | undefined {
  const run = activeRun(pass.status);
  const step = run?.abort === undefined && run !== undefined ? currentStep(run) : undefined;
  const shutdown = shutdownUnderWay(pass.record, step);
  if (shutdown === undefined || hasPassed(pass, shutdown.deadline)) {
    const why = 'no run of it waits for its system to shut down; let its run go on, or abort it';
    return refuseHost(pass, 'nothingToDo', why);
  }
  endShutdownWait(pass, shutdown);
  cancelOperation(pass);
  return undefined;
}

function abort(pass: Pass, reason: string, by: Requester): undefined {
  const run = activeRun(pass.status);
  if (run !== undefined && run.abort === undefined) {
    run.abort = create(AbortSchema, { by: by.actor, reason, at: timeNow(pass) });
    // A step that must not be stopped ends first; then the run ends.
    if (currentStep(run)?.abortable !== false) cancelOperation(pass);
  }
}

function releaseHold(
  pass: Pass,
  request: Extract<HostRequest, { kind: 'releaseHold' }>,
  by: Requester,
): Refusal | undefined {
  const { hold, reason, physicallyDisconnected = false } = request;
  const { status } = pass;
  const named = (each: Hold) => !isRestoredHold(each) && isNamed(each, hold);
  const kept = status.holds.filter((each) => !named(each));
  const fence = status.holds.find((each) => isFenceHold(each) && !kept.includes(each));
  const refusal = refusalOfFence(pass, fence !== undefined, physicallyDisconnected);
  if (refusal !== undefined) return refusal;
  if (kept.length === status.holds.length) {
    const held = status.holds.map((each) => each.reason).join('; ') || 'none';
    const lost = status.holds.some(isRestoredHold);
    const accept = lost ? `; a restored store is accepted for the whole ${pass.spec.rack}` : '';
    const message = `${pass.host.name} has no such hold; it has: ${held}${accept}`;
    return { code: 'failedPrecondition', reason: lost ? 'restored' : 'nothingToDo', message };
  }
  status.holds = kept;
  if (fence !== undefined) pass.record.fences = [];
  delete status.backoff;
  const why = fence === undefined ? '' : ' (said to be physically disconnected)';
  recordCause(pass, by.actor, `hold released${why}: ${reason}`);
  return undefined;
}

/**
 * A changed BMC is verified as soon as no run holds the host: that is the goal's first run. The
 * switch of a host without a BMC does not change while it has a run: nothing proves that it is the
 * one with which the run began, and a report about one would count for another.
 */
function update(
  pass: Pass,
  request: Extract<HostRequest, { kind: 'update' }>,
): Refusal | undefined {
  const run = activeRun(pass.status);
  if (run !== undefined && isOtherSwitch(pass.spec.bmc, request.spec.bmc)) {
    const why = 'what switches a host without a BMC does not change while it has a run';
    const id = idOf(pass.host.name);
    const right = `abort the run (rackwright host abort ${id}), and change bmc then`;
    return refuseHost(pass, 'busy', `${why}: ${right}`);
  }
  pass.host.spec = clone(HostSpecSchema, request.spec);
  pass.host.labels = { ...request.labels };
  if (request.fences !== undefined) setFences(pass, request.fences);
  delete pass.status.backoff;
  delete pass.record.powerEnforcement;
  return undefined;
}
