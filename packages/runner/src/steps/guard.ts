/**
 * Guard 0, the right machine: passed before the first write of every step that may destroy.
 *
 * Invariant: unknown is not passed. Only the host's policy, as the order states it, lets a machine
 * through that has no witness.
 */
import { judgeIdentity, witnessOfBmc, witnessOfSystem } from '@rackwright/erasure';
import type { FailedAttempt } from '@rackwright/results';
import type { StepContext, StepResult } from './step.ts';

export interface GuardPassed {
  readonly kind: 'passed';
  readonly witnesses: readonly string[];
  readonly system: Awaited<ReturnType<StepContext['machine']['identity']>>;
}

export type GuardResult = GuardPassed | { readonly kind: 'failed'; readonly end: StepResult };

/** The machine must be the one whose BMC was switched on. */
export async function guardIdentity(context: StepContext): Promise<GuardResult> {
  const system = await context.machine.identity();
  const expected = context.order.expectedIdentity;
  const verdict =
    expected === undefined
      ? { kind: 'unproven' as const, reason: 'the order says nothing of the BMC' }
      : judgeIdentity(witnessOfSystem(system), witnessOfBmc(expected));
  switch (verdict.kind) {
    case 'proven':
      return { kind: 'passed', witnesses: verdict.witnesses, system };
    case 'mismatch': {
      const message =
        `not the host whose BMC was switched on: ${verdict.witness} is ${verdict.inBand} here, ` +
        `but its BMC says ${verdict.outOfBand}`;
      return { kind: 'failed', end: failed('identityMismatch', message) };
    }
    case 'unproven':
      if (context.order.allowUnprovenIdentity === true) {
        return { kind: 'passed', witnesses: [], system };
      }
      return { kind: 'failed', end: failed('identityUnproven', verdict.reason) };
  }
}

function failed(type: FailedAttempt['type'], message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}
