/** The restart of a BMC, the same for each protocol: it shows by a silence and the next answer. */
import { type Clock, pause } from '@rackwright/platform';
import {
  type BmcAssertion,
  type BmcFailureType,
  type BmcResult,
  failed,
  ok,
  transient,
} from './driver.ts';

export interface RestartTimings {
  /** It falls silent, or says that it was restarted, within this; else nothing has happened. */
  readonly beginsWithinMs: number;
  /** It answers again within this. */
  readonly backWithinMs: number;
  readonly pollMs: number;
}

/** BMCs take one to four minutes to start. */
export const defaultRestartTimings: RestartTimings = {
  beginsWithinMs: 60_000,
  backWithinMs: 600_000,
  pollMs: 2_000,
};

/**
 * Watches a BMC whose restart was ordered. `answers` reads anything of it. Its text is a word that
 * differs after a restart where the BMC has one, else always the same.
 */
export async function watchRestart(
  before: string,
  answers: () => Promise<BmcResult<string>>,
  clock: Clock,
  timings: RestartTimings,
  signal: AbortSignal | undefined,
): Promise<BmcResult<BmcAssertion>> {
  const startedMs = clock.suspendAwareMs();
  let wasSilent = false;
  for (;;) {
    const answer = await answers();
    const spentMs = clock.suspendAwareMs() - startedMs;
    if (signal?.aborted === true) return transient('cancelled', 'the restart is not waited for');
    const isSilent = answer.kind === 'transient' && isAway(answer.reason);
    wasSilent ||= isSilent;
    const isBack = answer.kind === 'ok' && (wasSilent || answer.value !== before);
    if (isBack) return ok({ changed: true, notes: [] });
    const isLate = spentMs > timings.backWithinMs;
    const isOver = isLate || (answer.kind === 'failed' && !startingAnswers.has(answer.type));
    if (answer.kind === 'failed' && wasSilent && isOver) return answer;
    if (!wasSilent && spentMs > timings.beginsWithinMs) {
      const message = 'the BMC accepted to restart and went on answering as before';
      return failed('notApplied', message);
    }
    if (isLate) {
      return transient('unreachable', 'the BMC has not come back after its restart');
    }
    await pause(clock, timings.pollMs, signal);
  }
}

/** A BMC whose services are not all up yet answers so. */
const startingAnswers: ReadonlySet<BmcFailureType> = new Set([
  'protocol',
  'malformed',
  'unsupported',
  'rejected',
]);

function isAway(reason: string): boolean {
  return reason === 'unreachable' || reason === 'breakerOpen';
}
