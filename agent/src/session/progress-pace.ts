/**
 * How often an attempt reports its progress.
 *
 * 1. At once: its step changes, it has begun, it has got its slot.
 * 2. All other progress, the latest of it, at most once in a while: the places of a long queue, or
 *    the bytes of a fetch that many wait for, would use the bandwidth that reports and the lease
 *    need.
 */
import type { Clock } from '@rackwright/platform';
import type { Progress } from './executor.ts';

/** Between two words of an attempt that change nothing but how far it is. */
export const progressPaceMs = 1_000;

/** Wraps `tell` so that it gets fewer reports, by the rules above. */
export function throttle(
  clock: Pick<Clock, 'suspendAwareMs' | 'after'>,
  report: (progress: Progress) => void,
): (progress: Progress) => void {
  let latest: Progress | undefined;
  let reported: Progress | undefined;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  let isWaiting = false;
  const reportLatest = (): void => {
    if (latest === undefined || latest === reported) return;
    reported = latest;
    nextAtMs = clock.suspendAwareMs() + progressPaceMs;
    report(latest);
  };
  return (progress) => {
    latest = progress;
    const waitMs = nextAtMs - clock.suspendAwareMs();
    if (waitMs <= 0 || reported === undefined || isNews(reported, progress)) return reportLatest();
    if (isWaiting) return;
    isWaiting = true;
    clock.after(waitMs, () => {
      isWaiting = false;
      reportLatest();
    });
  };
}

function isNews(before: Progress, now: Progress): boolean {
  return phaseOf(before) !== phaseOf(now);
}

function phaseOf({ step, begun, queuePlace, signs = [] }: Progress): string {
  const seen = signs.map(({ kind }) => kind);
  return JSON.stringify([step, begun === true, queuePlace === undefined, seen]);
}
