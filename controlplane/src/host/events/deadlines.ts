/**
 * Stored deadlines (R5). Each fires once. None fires because of silence alone, or because of a wait
 * that is not the run's own. A hanging operation is cancelled at its deadline.
 */
import {
  awaitImageStep,
  bootLines,
  bootStalled,
  type Run,
  type RunFailure,
  RunKind,
  RunOutcome,
  type RunStep,
} from '@rackwright/messages';
import { queueTimedOut } from '../deployment/image-queue.ts';
import { hostNotProved } from '../deployment/not-proved.ts';
import { bootTraceOf } from '../operation/boot-traces.ts';
import { bootOperationId } from '../operation/boots.ts';
import { giveUpOperation } from '../operation/open-operations.ts';
import { deadlineFires } from '../operation/operation.ts';
import {
  activeRun,
  currentStep,
  hasPassed,
  type Pass,
  type PassView,
  waitsForOthers,
} from '../pass/pass.ts';
import type { RunView, StepView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';
import { engineSteps, isOfTemplate } from '../pass/step-names.ts';
import { endRun, failStep } from '../run/engine.ts';
import { isForcedRemoval } from '../run/forced.ts';
import { calledStep } from '../run/step-parts.ts';
import { whyNoRunner } from '../run/steps/power.ts';
import { stepDefinition } from '../run/steps.ts';

export function foldDeadlines(pass: Pass): void {
  const run = activeRun(pass.status);
  // A forced removal has deadlines of its own, and does not end because of one.
  if (run === undefined || isForcedRemoval(pass, run)) return;
  const step = currentStep(run);
  if (step !== undefined && stepIsOver(pass, step)) {
    if (step.name === awaitImageStep) {
      endAttempt(pass, run, step, hostNotProved(pass, run));
      return;
    }
    if (pass.record.operation?.queued === true) {
      endAttempt(pass, run, step, queueTimedOut(pass));
      return;
    }
    const isBoot = step.name === engineSteps.awaitRunner;
    const failure = isBoot
      ? noRunner(pass, run, step)
      : stepFailure('deadline', `${calledStep(step)}: no result before its deadline`);
    endAttempt(pass, run, step, failure);
    return;
  }
  if (!waitsForOthers(run) && deadlineFires(pass, run.deadline)) {
    const at = step === undefined ? 'its end' : calledStep(step);
    const limited = run.kind === RunKind.WORKFLOW ? 'the run took' : 'the run waited';
    const failure = stepFailure('deadline', `${limited} too long, at ${at}`);
    giveUpOperation(pass);
    endRun(pass, run, RunOutcome.TIMED_OUT, failure);
  }
}

/** With the steps of the boot, if its agent has reported them. */
function noRunner(pass: PassView, run: RunView, step: StepView): RunFailure {
  const why = whyNoRunner(pass, run);
  const text = `${calledStep(step)}: no runner reported from the host before its deadline`;
  const reasonText = why === undefined ? text : `${text}: ${why}`;
  const trace = bootTraceOf(pass, bootOperationId(pass, run));
  if (trace === undefined) return stepFailure('deadline', reasonText);
  const detail = bootLines(trace).join('\n');
  return stepFailure('deadline', reasonText, detail, bootStalled(trace.missing));
}

/** The end of an engine's own wait needs no report of an agent. */
function stepIsOver(pass: PassView, step: RunStep): boolean {
  const definition = stepDefinition(step);
  const isOurOwn =
    definition.kind === 'call' ||
    (definition.kind === 'condition' && definition.needsNoAgent === true);
  return isOurOwn
    ? hasPassed(pass, step.deadline)
    : deadlineFires(pass, step.deadline, { agentStops: true });
}

function endAttempt(pass: Pass, run: Run, step: RunStep, failure: RunFailure): void {
  step.error = failure.message;
  const { call, operation } = pass.record;
  // A call in progress, or one with an unknown result, may have arrived like an order.
  const wasCalled = call?.callTime !== undefined || (call?.transientCount ?? 0) > 0;
  const isOpen = operation?.sentTo !== undefined || wasCalled;
  // An agent stops at the deadline by itself; one whose clock was stepped would hold the host.
  giveUpOperation(pass);
  if (run.kind === RunKind.WORKFLOW || isOfTemplate(step)) {
    failStep(pass, run, step, failure, isOpen ? 'unawaited' : 'over');
  } else {
    endRun(pass, run, RunOutcome.TIMED_OUT, failure);
  }
}
