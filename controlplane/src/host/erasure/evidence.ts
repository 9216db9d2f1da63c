/** Checks who signed evidence: only the registered agent of the rack speaks for its runners. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  describeImplausible,
  parseEvidence,
  pemOfPublicKey,
  plausibilityProblems,
  ShapeError,
  signatureFits,
} from '@rackwright/erasure';
import type { agent, RunFailure } from '@rackwright/messages';
import type { PassView } from '../pass/pass.ts';
import type { StepView } from '../pass/read-only.ts';
import { invalidResult } from '../pass/step-failure.ts';

/**
 * Calls `take` with the evidence of a step, if it exists and the registered agent has signed it.
 * Returns why it does not count: it is missing, not trusted or malformed, or the answer of `take`.
 */
export function withEvidence(
  pass: PassView,
  step: StepView,
  evidence: agent.Evidence | undefined,
  take: (signed: agent.Evidence, parsed: agent.StepEvidence) => RunFailure | undefined,
): RunFailure | undefined {
  if (evidence === undefined) return invalidResult(`${step.name} brought no evidence`);
  const problem = signatureProblem(pass, evidence);
  if (problem !== undefined) return invalidResult(problem);
  try {
    return take(evidence, parseEvidence(evidence.payload));
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    return invalidResult(`${step.name}: ${error.message}`);
  }
}

/** Why evidence is not trusted, or undefined. */
export function signatureProblem(pass: PassView, evidence: agent.Evidence): string | undefined {
  const registered = pass.snapshot.agentPublicKey;
  if (registered === undefined) return 'the rack has no registered agent key';
  if (!Buffer.from(evidence.publicKey).equals(registered)) {
    return 'the evidence is signed by a key that is not the registered one of the rack';
  }
  const fits = signatureFits(evidence.payload, evidence.signature, pemOfPublicKey(registered));
  return fits ? undefined : 'the signature of the evidence does not fit';
}

/** By our own clock: the time since the step began. */
export function orderAgeOf({ snapshot }: PassView, { startTime }: StepView): number {
  return startTime === undefined
    ? Number.POSITIVE_INFINITY
    : Math.max(0, snapshot.nowMs - timestampMs(startTime));
}

/** Why a statement of the evidence about a device cannot be true, or undefined. */
export function whyUntrue(
  outcome: agent.DeviceOutcome,
  plan: agent.DevicePlan,
  orderAgeMs: number,
): string | undefined {
  const problems = plausibilityProblems(outcome, plan, orderAgeMs).map(describeImplausible);
  return problems.length === 0 ? undefined : `the evidence cannot be true: ${problems.join('; ')}`;
}
