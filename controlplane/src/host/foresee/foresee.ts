/**
 * What a request would do if it were accepted now: the steps as the engine would take them, and the
 * devices with their fates. Pure.
 *
 * Invariants:
 * F1 The steps come from the functions that start runs, on a copy of the record: there is no second
 *    list of them.
 * F2 Nothing of the copy is stored, and nothing is sent.
 * F3 A refusal because of the host's state is not considered here: a refused request has steps,
 *    too.
 */
import { actors, type PlannedDevice, RunKind, type RunStep } from '@rackwright/messages';
import { kindOfDeployment, takeDeployment } from '../deployment/take-deployment.ts';
import { beginPass, type Pass, type PassView } from '../pass/pass.ts';
import type { HostRequest, Refusal } from '../pass/types.ts';
import { refusalOfSteps } from '../request/requested-steps.ts';
import { startRun } from '../run/engine.ts';
import { startWorkflow } from '../run/template-run.ts';
import { foreseeDeletion } from './deletion.ts';
import { foreseeDevices, lossOf } from './devices.ts';
import { notesOn } from './notes.ts';

/** What can be planned. */
export type PlannableRequest =
  | Extract<HostRequest, { readonly kind: 'clean' | 'delete' | 'workflow' }>
  | Extract<HostRequest, { readonly image: string }>;

/** A run, or the runs of a deletion one after the other, before any of it has begun. */
export interface Foresight {
  readonly kind: RunKind;
  readonly steps: readonly RunStep[];
  /** For a deletion: the runs up to the removal, in order. */
  readonly stages: readonly string[];
  readonly devices: readonly PlannedDevice[];
  /** The lost data, one line each. */
  readonly dataLoss: readonly string[];
  /** Further information; true now, and no part of the plan's basis. */
  readonly notes: readonly string[];
}

/** Predicts the request; an invalid request has no prediction. */
export function foresee(
  { record, snapshot }: Pick<PassView, 'record' | 'snapshot'>,
  request: PlannableRequest,
): Foresight | Refusal {
  const pass = beginPass(record, snapshot);
  if (request.kind === 'delete') {
    const { steps, ...deletion } = foreseeDeletion(pass, request);
    return foreseen(pass, RunKind.DELETE, steps, deletion);
  }
  const refusal = request.kind === 'clean' ? refusalOfSteps(pass, request.steps) : undefined;
  if (refusal !== undefined) return refusal;
  const run = startFor(pass, request);
  return foreseen(pass, run.kind, run.steps, { stages: [], notes: [] });
}

function startFor(pass: Pass, request: Exclude<PlannableRequest, { kind: 'delete' }>) {
  switch (request.kind) {
    case 'clean':
      startRun(pass, RunKind.CLEAN, planner, request.steps.length > 0 ? request.steps : undefined);
      break;
    case 'provision':
    case 'reimage':
      takeDeployment(pass, request);
      startRun(pass, kindOfDeployment(request), planner);
      break;
    case 'workflow':
      startWorkflow(pass, request, planner);
  }
  const { run } = pass.status;
  if (run === undefined) throw new Error('a run that was started stands in the record');
  return run;
}

/** The requester of predicted runs. */
const planner = actors.plan;

function foreseen(
  pass: Pass,
  kind: RunKind,
  steps: readonly RunStep[],
  { stages, notes }: Pick<Foresight, 'stages' | 'notes'>,
): Foresight {
  const devices = foreseeDevices(pass, kind, steps);
  return {
    kind,
    steps,
    stages,
    devices,
    dataLoss: lossOf(devices, steps),
    notes: [...notesOn(pass, kind, steps), ...notes],
  };
}
