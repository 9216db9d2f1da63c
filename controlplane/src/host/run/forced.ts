/**
 * A forced removal (DESIGN §7). Each call to agent or BMC is made once, with a bounded wait. Work
 * that could not be done is recorded as left behind.
 *
 * Invariants:
 * 1. Whether a removal is forced is read from the intent at each decision, never stored: an upgrade
 *    to force during a hanging call counts, and a crash cannot lose it.
 * 2. There is no wait for an agent that is not connected, nor longer than `forcedCallTimeoutMs` for
 *    one call.
 *
 * Must not: start or end runs; the engine and `deletion.ts` do.
 */
import { DeletionMode, type Run, RunKind, type RunStep, StepState } from '@rackwright/messages';
import {
  hasPassed,
  type Pass,
  type PassView,
  stopWaiting,
  timeAfter,
  timeNow,
} from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';
import { messageMax, truncate } from '../pass/step-failure.ts';
import { engineSteps } from '../pass/step-names.ts';

/** The most recorded lines about what was left behind. */
const linesMax = 32;

/** Whether the host is removed regardless of agent and BMC. */
export function isForced({ status }: PassView): boolean {
  return status.deletion?.mode === DeletionMode.FORCE;
}

/** Whether this run is a removal whose failures no longer count. */
export function isForcedRemoval(pass: PassView, run: RunView): boolean {
  return run.kind === RunKind.DELETE && isForced(pass);
}

/** From now on the wait for the present call has its own bound. */
export function limitCall(pass: Pass): void {
  pass.record.forcedUntil = timeAfter(pass, pass.snapshot.timing.forcedCallTimeoutMs);
}

/** Why a forced removal no longer waits for the present call; undefined while it waits. */
export function whyNotWaited(pass: PassView): string | undefined {
  const { session, sessionElsewhere, timing, restored } = pass.snapshot;
  if (session === undefined && !sessionElsewhere) return 'the agent of the rack is not connected';
  if (!hasPassed(pass, pass.record.forcedUntil)) return undefined;
  const { operation } = pass.record;
  if (restored !== undefined && operation !== undefined && operation.sentTo === undefined) {
    return `it was not ordered: ${restored}`;
  }
  return `no answer within ${timing.forcedCallTimeoutMs / 1_000} s`;
}

/** Gives the present step up when a forced removal no longer waits for it. True: given up. */
export function giveUpWaiting(pass: Pass, run: Run, step: RunStep): boolean {
  const why = isForcedRemoval(pass, run) ? whyNotWaited(pass) : undefined;
  if (why === undefined) return false;
  giveUpStep(pass, run, step, why);
  return true;
}

/** The step has failed, and the removal goes on without it. */
export function giveUpStep(pass: Pass, run: Run, step: RunStep, why: string): void {
  const undone = undoneBy[step.name] ?? `${step.name}: failed`;
  recordRemnant(pass, `${undone}: ${why}`);
  step.state = StepState.FAILED;
  step.error = truncate(why, messageMax);
  step.endTime = timeNow(pass);
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

/** Records what may remain, once. */
export function recordRemnant({ record }: Pass, line: string): void {
  const text = truncate(line, messageMax);
  if (record.leftBehind.length >= linesMax || record.leftBehind.includes(text)) return;
  record.leftBehind.push(text);
}
