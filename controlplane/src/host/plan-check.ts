/**
 * Starts exactly what a plan says, or nothing: what a request with a plan would do is computed anew
 * in the very turn that would start it, from what that turn is decided by. Pure.
 */
import { create } from '@bufbuild/protobuf';
import { type Run, RunKind, store } from '@rackwright/api';
import { foresee, type PlannableRequest } from './foresee.ts';
import { isErased } from './foresee-devices.ts';
import { type DraftPlan, draftPlan } from './plan-basis.ts';
import { differences } from './plan-difference.ts';
import { refused } from './refusal.ts';
import { isErasure } from './step-failure.ts';
import { activeRun, type Turn } from './turn.ts';
import type { HostRequest, Refusal } from './types.ts';

/** Draws up the plan of a request as it would be now, or says what is wrong with the request. */
export function planNow(
  turn: Turn,
  request: PlannableRequest,
  asked: store.PlanBasis['request'],
): DraftPlan | Refusal {
  const foresight = foresee(turn, request);
  if ('code' in foresight) return foresight;
  return draftPlan(turn, asked, templateDigestOf(request), foresight);
}

/** Of a workflow: the template whose steps the request brings. */
function templateDigestOf(_request: PlannableRequest): string {
  return '';
}

function isPlannable(request: HostRequest): request is PlannableRequest {
  return ['clean', 'provision', 'delete'].includes(request.kind);
}

/** Why a request may not start what its plan says; undefined when it may, or has no plan. */
export function refusalOfPlan(turn: Turn, request: HostRequest): Refusal | undefined {
  const { plan: kept } = request;
  if (kept === undefined) return undefined;
  if (!isPlannable(request)) return refused(turn, `${request.kind} cannot be started by a plan`);
  const now = planNow(turn, request, kept.basis?.request);
  if ('code' in now) return now;
  if (now.plan.hash === kept.plan?.hash) return undefined;
  return refused(turn, changedText(differences(kept, now)));
}

/** "the plan does not hold any more: disk A (1 GB) is gone; …" */
export function changedText(lines: readonly string[]): string {
  return `the plan does not hold any more: ${lines.join('; ')}; plan again`;
}

/** The run that has just been started remembers its plan, and what it may erase. */
export function notePlan(turn: Turn, { plan: kept }: HostRequest): void {
  const run = activeRun(turn.status);
  if (kept?.plan === undefined || run === undefined || run.kind !== kept.plan.kind) return;
  run.planHash = kept.plan.hash;
  const devices = devicesErased(run, kept);
  if (devices !== undefined) {
    turn.record.plannedErasure = create(store.PlannedErasureSchema, { devices });
  }
}

/** Undefined where the plan could not name them. */
function devicesErased(run: Run, { plan, basis }: store.PlanRecord): string[] | undefined {
  const erases = run.steps.some(({ name }) => isErasure(name));
  if (run.kind !== RunKind.CLEAN || !erases || basis?.inventory === undefined) return undefined;
  const erased = plan?.devices.filter(isErased) ?? [];
  return erased.map(({ serial, wwn }) => serial || wwn);
}
