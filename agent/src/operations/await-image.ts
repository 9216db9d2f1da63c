/**
 * Waits until a host has said that it runs what was put onto it. Nothing is done to the host: after
 * a restart it is waited for anew, and a proof that came meanwhile, or before, counts.
 */
import { type agent, DeployProof } from '@rackwright/api';
import type { Clock } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import type { Proofs } from '../deploy/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';

export const awaitImageStep = 'deploy.await_image';

export interface AwaitImageParts {
  readonly proofs: Pick<Proofs, 'whenProved' | 'seenSince'>;
  readonly clock: Clock;
}

/** Longest timer; a later deadline is looked at again. */
const timerMsMax = 24 * 3_600_000;

export async function awaitImage(
  { proofs, clock }: AwaitImageParts,
  operation: agent.Operation,
  { step, deployment }: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  if (deployment === undefined) return failure('invalidArgument', `${step} names no deployment`);
  if (deployment.deploy?.proof === DeployProof.POWER_ON) return { kind: 'complete' };
  const { hostUid } = operation;
  const sinceMs = clock.nowMs();
  context.continuing({ step, text: 'waits until the host phones home' });
  for (;;) {
    const waitMs = Math.min(context.remainingMs(), timerMsMax);
    if (await proofs.whenProved(deployment.id, Math.max(0, waitMs), context.signal)) {
      return { kind: 'complete' };
    }
    if (context.signal.aborted) return failure('cancelled', 'It was cancelled.');
    if (context.remainingMs() <= 0) break;
  }
  return failure('notProved', notProvedWords(sinceMs, proofs.seenSince(hostUid, sinceMs)));
}

function notProvedWords(sinceMs: number, seen: readonly string[]): string {
  const since = new Date(sinceMs).toISOString();
  const sightings =
    seen.length === 0 ? 'nothing was seen of it at the boot services since' : seen.join('; ');
  return (
    `the host was switched on and was waited for since ${since}, and has not phoned home; ` +
    `${sightings}. Look at its console: whether it boots from the disk that was written, has an ` +
    'address on the provisioning network, and runs cloud-init to the end'
  );
}
