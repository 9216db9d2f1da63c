/** A person lets a run go on that waits for one: with its present step, or without it. */
import { create } from '@bufbuild/protobuf';
import { type Run, RunPhase, type RunStep, SkipSchema, StepState } from '@rackwright/messages';
import { refused } from '../life/refusal.ts';
import { completeStep, restartStep } from '../run/engine.ts';
import { calledStep, partOf } from '../run/step-parts.ts';
import { skipSteps } from '../run/step-turn.ts';
import { engineSteps } from '../turn/step-names.ts';
import { activeRun, causedBy, currentStep, now, stopWaiting, type Turn } from '../turn/turn.ts';
import type { HostRequest, Refusal, Requester } from '../turn/types.ts';
import { resumeFailed } from './resume-failed.ts';

type StepOn = Extract<HostRequest, { kind: 'resume' | 'skip' }>;

export function stepOn(turn: Turn, request: StepOn, by: Requester): Refusal | undefined {
  const run = activeRun(turn.status);
  if (run === undefined) {
    if (request.kind === 'resume') return resumeFailed(turn, request.reason, by);
    return refused(turn, 'nothingToDo', 'no run of the host waits for a person');
  }
  const step = currentStep(run);
  if (step === undefined || !isHeld(run, step)) return refusedAt(turn, request, step);
  if (request.kind === 'skip') skipStep(turn, run, step, request.reason, by);
  else if (step.name === engineSteps.hold) completeStep(turn, run, step);
  else restartStep(turn, run, step, {});
  stopWaiting(turn, run);
  const why = request.reason === '' ? '' : `: ${request.reason}`;
  causedBy(
    turn,
    by.actor,
    `${calledStep(step)} ${request.kind === 'skip' ? 'skipped' : 'resumed'}${why}`,
  );
  return undefined;
}

/** A control step, or one that must not run twice by itself and was cut short. */
function isHeld({ phase, waiting }: Run, step: RunStep): boolean {
  if (step.state !== StepState.RUNNING) return false;
  return (
    step.name === engineSteps.wait || (phase === RunPhase.WAITING && waiting?.reason === 'hold')
  );
}

function refusedAt(turn: Turn, request: StepOn, step: RunStep | undefined): Refusal {
  const at = step?.name ?? 'its end';
  return refused(
    turn,
    'busy',
    `the run does not wait for a person (at ${at}); ${request.kind} has nothing to do; ` +
      'wait for its end or abort it',
  );
}

function skipStep(turn: Turn, run: Run, step: RunStep, reason: string, by: Requester): void {
  step.state = StepState.SKIPPED;
  step.endTime = now(turn);
  step.skip = create(SkipSchema, { by: by.actor, reason, at: now(turn) });
  const { to } = step.title === '' ? { to: run.currentStep } : partOf(run.steps, run.currentStep);
  skipSteps(run.steps.slice(run.currentStep + 1, to + 1), `${calledStep(step)} was skipped`);
  run.currentStep = to + 1;
}
