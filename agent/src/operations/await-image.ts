/**
 * Waits until a host has reported that it runs the image that was deployed to it. Nothing is done
 * to the host: after a restart the wait begins anew, and a proof that came meanwhile, or before,
 * counts.
 */
import { create } from '@bufbuild/protobuf';
import { agent, DeployProof } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import type { Proofs } from '../deploy/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';

export interface AwaitImageParts {
  readonly proofs: Pick<Proofs, 'waitUntilProved' | 'signsSince'>;
  readonly clock: Clock;
}

const waitsForCall = 'waits until the host phones home';
/** The interval of checks for new signs of the host. */
const pollMs = 15_000;

export async function awaitImage(
  { proofs, clock }: AwaitImageParts,
  operation: agent.Operation,
  { step, deployment }: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  if (deployment === undefined) return failure('invalidArgument', `${step} names no deployment`);
  if (deployment.deploy?.proof === DeployProof.POWER_ON) return { kind: 'complete' };
  const sinceMs = clock.nowMs();
  const signs = () => proofs.signsSince(operation.hostUid, sinceMs);
  let reported: string | undefined;
  for (;;) {
    const seen = signs();
    const news = seen.map(({ kind }) => kind).join();
    if (news !== reported) context.reportProgress({ step, text: waitsForCall, signs: seen });
    reported = news;
    const waitMs = Math.max(0, Math.min(context.remainingMs(), pollMs));
    if (await proofs.waitUntilProved(deployment.id, waitMs, context.signal)) {
      return { kind: 'complete' };
    }
    if (context.signal.aborted) return failure('cancelled', 'It was cancelled.');
    if (context.remainingMs() <= 0) break;
  }
  const since = new Date(sinceMs).toISOString();
  const observations = create(agent.ObservationsSchema, { signs: [...signs()] });
  return {
    ...failure('notProved', `The host was waited for since ${since}, and has not phoned home.`),
    observations,
  };
}
