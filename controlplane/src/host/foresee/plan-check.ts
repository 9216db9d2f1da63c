/**
 * Starts exactly what a plan says, or nothing. The plan of the request is computed again in the
 * same pass that would start it, from the same data. Pure.
 */
import { create, equals } from '@bufbuild/protobuf';
import { applyVolumesStep, isErasure, RunKind, store } from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import { refuseHost } from '../life/refusal.ts';
import { activeRun, type Pass, type PassView, recordCause, runName } from '../pass/pass.ts';
import type { HostRequest, Refusal, Requester } from '../pass/types.ts';
import { isErased } from './fate.ts';
import { foresee, type PlannableRequest } from './foresee.ts';
import { type DraftPlan, draftHostPlan } from './plan-basis.ts';
import { differences } from './plan-difference.ts';

/** The plan of a request in the present state, or the errors of the request. */
export function planNow(
  pass: PassView,
  request: PlannableRequest,
  planRequest: store.PlanBasis['request'],
): DraftPlan | Refusal {
  const foresight = foresee(pass, request);
  if ('code' in foresight) return foresight;
  return draftHostPlan(pass, planRequest, templateDigestOf(request), foresight);
}

/** For a workflow: the template of the request's steps. */
function templateDigestOf(request: PlannableRequest): string {
  return request.kind === 'workflow' ? request.templateDigest : '';
}

function isPlannable(request: HostRequest): request is PlannableRequest {
  return ['clean', 'provision', 'reimage', 'delete', 'workflow'].includes(request.kind);
}

/** Why a request may not start what its plan says; undefined when it may, or has no plan. */
export function refusalOfPlan(pass: PassView, request: HostRequest): Refusal | undefined {
  if (request.plan === undefined) return undefined;
  const { record: kept } = request.plan;
  if (!isPlannable(request))
    return refuseHost(pass, 'planChanged', `${request.kind} cannot be started by a plan`);
  const now = planNow(pass, request, kept.basis?.request);
  if ('code' in now) return now;
  if (now.plan.hash !== kept.plan?.hash)
    return refuseHost(pass, 'planChanged', planChangedText(kept, now));
  return request.kind === 'delete' ? refusalWhileErased(pass, kept) : undefined;
}

/** A later plan does not bind a deletion that is already erasing. */
function refusalWhileErased(pass: PassView, kept: store.PlanRecord): Refusal | undefined {
  const { status, record, host } = pass;
  const run = activeRun(status);
  if (status.deletion === undefined || run?.kind !== RunKind.CLEAN) return undefined;
  const [bound, wanted] = [record.plannedErasure, plannedErasure(kept)];
  const isBound =
    bound !== undefined &&
    wanted !== undefined &&
    equals(store.PlannedErasureSchema, bound, wanted);
  if (isBound) return undefined;
  const hostId = idOf(host.name);
  const first = `take the deletion back first (rackwright host cancel-delete ${hostId})`;
  const text = `${runName(run)} of the deletion is under way and does not follow this plan`;
  return refuseHost(pass, 'deleting', `${text}; ${first}, then plan it anew and start that`);
}

/** "the plan does not hold any more: disk A (1 GB) is gone; …" */
export function planChangedText(kept: store.PlanRecord, now: DraftPlan): string {
  return `the plan does not hold any more: ${differences(kept, now).join('; ')}; plan again`;
}

/** The newly started run records its plan, and what it may erase. */
export function notePlan(pass: Pass, request: HostRequest, by: Requester): void {
  const { record: kept, reason = '' } = request.plan ?? {};
  const run = activeRun(pass.status);
  if (kept?.plan === undefined) return;
  const { kind, hash } = kept.plan;
  const why = reason === '' ? '' : `: ${reason}`;
  recordCause(pass, by.actor, `started by plan ${hash.slice(0, hashShown)}${why}`);
  const erasure = plannedErasure(kept);
  // Its clean comes later, possibly after a release.
  if (kind === RunKind.DELETE) {
    if (erasure === undefined) delete pass.record.plannedDeletion;
    else pass.record.plannedDeletion = erasure;
  }
  if (run === undefined || run.kind !== kind) return;
  run.planHash = hash;
  if (kind === RunKind.CLEAN && erasure !== undefined) pass.record.plannedErasure = erasure;
}

/** Digits of a hash in texts for people. */
const hashShown = 12;

/** Undefined where nothing is erased, or the plan could not name the devices. */
function plannedErasure({ plan, basis }: store.PlanRecord): store.PlannedErasure | undefined {
  const { steps = [], devices = [] } = plan ?? {};
  const erases = steps.some(({ step }) => isErasure(step));
  // The disks after the creation of volumes are not known in advance.
  const isOpen = steps.some(({ step }) => step === applyVolumesStep);
  if (!erases || isOpen || basis?.inventory === undefined) return undefined;
  const erased = devices.filter(isErased).map(({ serial, wwn }) => serial || wwn);
  return create(store.PlannedErasureSchema, { devices: erased });
}
