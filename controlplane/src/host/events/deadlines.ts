/**
 * Stored deadlines (R5): each fires once, and never because of silence alone, nor of what a run
 * waits for that is not its own. What hangs at its deadline is told to stop.
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
import { turnMissed } from '../deployment/image-turn.ts';
import { hostNotProved } from '../deployment/not-proved.ts';
import { bootTraceOf } from '../operation/boot-traces.ts';
import { bootOperationId } from '../operation/boots.ts';
import { giveUpOperation } from '../operation/open-operations.ts';
import { deadlineFires } from '../operation/operation.ts';
import { endRun, failStep } from '../run/engine.ts';
import { isForcedRemoval } from '../run/forced.ts';
import { calledStep } from '../run/step-parts.ts';
import { whyNoRunner } from '../run/steps/power.ts';
import { stepDefinition } from '../run/steps.ts';
import { stepFailure } from '../turn/step-failure.ts';
import { engineSteps } from '../turn/step-names.ts';
import { activeRun, currentStep, hasPassed, type Turn, waitsForOthers } from '../turn/turn.ts';

export function foldDeadlines(turn: Turn): void {
  const run = activeRun(turn.status);
  // A forced removal has deadlines of its own, and ends for none.
  if (run === undefined || isForcedRemoval(turn, run)) return;
  const step = currentStep(run);
  if (step !== undefined && stepIsOver(turn, step)) {
    if (step.name === awaitImageStep) {
      endAttempt(turn, run, step, hostNotProved(turn, run));
      return;
    }
    if (turn.record.operation?.queued === true) {
      endAttempt(turn, run, step, turnMissed(turn));
      return;
    }
    const isBoot = step.name === engineSteps.awaitRunner;
    const failure = isBoot
      ? noRunner(turn, run, step)
      : stepFailure('deadline', `${calledStep(step)}: no result before its deadline`);
    endAttempt(turn, run, step, failure);
    return;
  }
  if (!waitsForOthers(run) && deadlineFires(turn, run.deadline)) {
    const at = step === undefined ? 'its end' : calledStep(step);
    const limited = run.kind === RunKind.WORKFLOW ? 'the run took' : 'the run waited';
    const failure = stepFailure('deadline', `${limited} too long, at ${at}`);
    if (run.kind === RunKind.WORKFLOW) giveUpOperation(turn);
    endRun(turn, run, RunOutcome.TIMED_OUT, failure);
  }
}

/** With the boot, step by step, where its agent has told of it. */
function noRunner(turn: Turn, run: Run, step: RunStep): RunFailure {
  const why = whyNoRunner(turn, run);
  const text = `${calledStep(step)}: no runner reported from the host before its deadline`;
  const said = why === undefined ? text : `${text}: ${why}`;
  const trace = bootTraceOf(turn, bootOperationId(turn, run));
  if (trace === undefined) return stepFailure('deadline', said);
  const detail = bootLines(trace).join('\n');
  return stepFailure('deadline', said, detail, bootStalled(trace.missing));
}

/** What the engine waits for by itself needs no agent to say that it is over. */
function stepIsOver(turn: Turn, step: RunStep): boolean {
  const definition = stepDefinition(step);
  const isOurOwn =
    definition.kind === 'call' ||
    (definition.kind === 'condition' && definition.needsNoAgent === true);
  return isOurOwn
    ? hasPassed(turn, step.deadline)
    : deadlineFires(turn, step.deadline, { agentStops: true });
}

function endAttempt(turn: Turn, run: Run, step: RunStep, failure: RunFailure): void {
  step.error = failure.message;
  if (run.kind !== RunKind.WORKFLOW && step.title === '') {
    endRun(turn, run, RunOutcome.TIMED_OUT, failure);
    return;
  }
  const { call, operation } = turn.record;
  // A call that is under way, or of which nobody could tell, may have arrived as an order may.
  const wasCalled = call?.callTime !== undefined || (call?.transientCount ?? 0) > 0;
  const isOpen = operation?.sentTo !== undefined || wasCalled;
  giveUpOperation(turn);
  failStep(turn, run, step, failure, !isOpen);
}
