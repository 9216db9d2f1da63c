/** A person lets a run go on that waits for one: with its present step, or without it. */
import { activeRun, type Turn } from './turn.ts';
import type { HostRequest, Refusal, Requester } from './types.ts';

export function stepOn(
  turn: Turn,
  request: Extract<HostRequest, { kind: 'resume' | 'skip' }>,
  _by: Requester,
): Refusal | undefined {
  const run = activeRun(turn.status);
  const at = run?.steps[run.currentStep]?.name ?? 'its end';
  const message = `${turn.host.name}: the run does not wait for a person (at ${at}); ${request.kind} has nothing to do`;
  return { code: 'failedPrecondition', message };
}
