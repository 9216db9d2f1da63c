/**
 * A forced removal (DESIGN §7): each call to agent or BMC is made once and waited for a bounded
 * time; what could not be done is written down, for it is left behind.
 *
 * Invariants:
 * 1. Whether a removal is forced is read from the intent whenever something is decided, never kept:
 *    an upgrade during a hanging call counts, and a crash cannot lose it.
 * 2. Nothing waits for an agent that is not connected, nor longer than `forcedCallTimeoutMs` for
 *    one call, whoever is silent.
 *
 * Must not: start or end runs; the engine and `deletion.ts` do.
 */
import { DeletionMode, type Run, RunKind, type RunStep, StepState } from '@rackwright/messages';
import { hasPassed, later, now, type Pass, stopWaiting } from '../pass/pass.ts';
import { cut, messageMax } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';

/** Lines that a record keeps of what was left behind. */
const linesMax = 32;

/** Whether the host is to be removed whatever agent and BMC say. */
export function isForced({ status }: Pass): boolean {
  return status.deletion?.mode === DeletionMode.FORCE;
}

/** Whether this run is a removal whose failures no longer count. */
export function isForcedRemoval(pass: Pass, run: Run): boolean {
  return run.kind === RunKind.DELETE && isForced(pass);
}

/** From now on the present call is waited for no longer than its share. */
export function limitCall(pass: Pass): void {
  pass.record.forcedUntil = later(pass, pass.context.timing.forcedCallTimeoutMs);
}

/** Why a forced removal waits no longer for the present call; undefined while it does. */
export function whyNotWaited(pass: Pass): string | undefined {
  const { session, sessionElsewhere, timing } = pass.context;
  if (session === undefined && !sessionElsewhere) return 'the agent of the rack is not connected';
  if (!hasPassed(pass, pass.record.forcedUntil)) return undefined;
  return `no answer within ${timing.forcedCallTimeoutMs / 1_000} s`;
}

/** Gives the present step up when a forced removal waits for it no longer; whether it did. */
export function giveUpWaiting(pass: Pass, run: Run, step: RunStep): boolean {
  const why = isForcedRemoval(pass, run) ? whyNotWaited(pass) : undefined;
  if (why === undefined) return false;
  giveUpStep(pass, run, step, why);
  return true;
}

/** The step has failed, and the removal goes on without it. */
export function giveUpStep(pass: Pass, run: Run, step: RunStep, why: string): void {
  const undone = undoneBy[step.name] ?? `${step.name}: failed`;
  leaveBehind(pass, `${undone}: ${why}`);
  step.state = StepState.FAILED;
  step.error = cut(why, messageMax);
  step.endTime = now(pass);
  delete step.deadline;
  delete pass.record.operation;
  stopWaiting(pass, run);
  run.currentStep += 1;
}

const undoneBy: Readonly<Record<string, string>> = {
  [engineSteps.off]: 'power: the host could not be switched off',
  [engineSteps.forget]:
    'agent: it has not confirmed that it dropped addresses, credentials, leases and boot grants',
};

/** Writes down what may still be, once. */
export function leaveBehind({ record }: Pass, line: string): void {
  const text = cut(line, messageMax);
  if (record.leftBehind.length >= linesMax || record.leftBehind.includes(text)) return;
  record.leftBehind.push(text);
}
