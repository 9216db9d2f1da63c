/** A person releases a run that waits for one: with its present step, or without it. */
import { create } from '@bufbuild/protobuf';
import {
  hostWaitOf,
  type Run,
  RunPhase,
  type RunStep,
  SkipSchema,
  StepState,
} from '@rackwright/messages';
import { refuseHost } from '../life/refusal.ts';
import {
  activeRun,
  currentStep,
  type Pass,
  type PassView,
  recordCause,
  stopWaiting,
  timeNow,
} from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { skipReasons } from '../pass/skip-reason.ts';
import { engineSteps, isOfTemplate } from '../pass/step-names.ts';
import type { HostRequest, Refusal, Requester } from '../pass/types.ts';
import { completeStep, restartStep } from '../run/engine.ts';
import { calledStep, partOf } from '../run/step-parts.ts';
import { skipSteps } from '../run/step-start.ts';
import { resumeFailed } from './resume-failed.ts';

type StepOn = Extract<HostRequest, { kind: 'resume' | 'skip' }>;

export function stepOn(pass: Pass, request: StepOn, by: Requester): Refusal | undefined {
  const run = activeRun(pass.status);
  if (run === undefined) {
    if (request.kind === 'resume') return resumeFailed(pass, request.reason, by);
    return refuseHost(pass, 'nothingToDo', 'no run of the host waits for a person');
  }
  const step = currentStep(run);
  if (step === undefined || !isHeld(run, step)) return refusedAt(pass, request, step);
  if (request.kind === 'skip') skipStep(pass, run, step, request.reason, by);
  else if (step.name === engineSteps.hold) completeStep(pass, run, step);
  else restartStep(pass, run, step, {});
  stopWaiting(pass, run);
  const why = request.reason === '' ? '' : `: ${request.reason}`;
  recordCause(
    pass,
    by.actor,
    `${calledStep(step)} ${request.kind === 'skip' ? 'skipped' : 'resumed'}${why}`,
  );
  return undefined;
}

/** A control step, or an interrupted step that must not run twice automatically. */
function isHeld({ phase, waiting }: RunView, step: StepView): boolean {
  if (step.state !== StepState.RUNNING) return false;
  if (step.name === engineSteps.wait) return true;
  return phase === RunPhase.WAITING && hostWaitOf(waiting) === 'hold';
}

function refusedAt(pass: PassView, request: StepOn, step: StepView | undefined): Refusal {
  const at = step?.name ?? 'its end';
  return refuseHost(
    pass,
    'busy',
    `the run does not wait for a person (at ${at}); ${request.kind} has nothing to do; ` +
      'wait for its end or abort it',
  );
}

function skipStep(pass: PassView, run: Run, step: RunStep, reason: string, by: Requester): void {
  step.state = StepState.SKIPPED;
  step.endTime = timeNow(pass);
  step.skip = create(SkipSchema, { by: by.actor, reason, at: timeNow(pass) });
  const { to } = isOfTemplate(step) ? partOf(run.steps, run.currentStep) : { to: run.currentStep };
  skipSteps(
    run.steps.slice(run.currentStep + 1, to + 1),
    skipReasons.partSkipped(calledStep(step)),
  );
  run.currentStep = to + 1;
}
