/** Figures of the process that this is. */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { ProcessFigures } from '../process-figures.ts';

/** How often the lag of the event loop is sampled, milliseconds. */
const resolutionMs = 50;
/** Readers within this time get the same figures, milliseconds. */
const keptMs = 500;

/** Begins to measure; the answer reads. Nothing of it keeps the process alive. */
export function nodeProcessFigures(): () => ProcessFigures {
  const lag = monitorEventLoopDelay({ resolution: resolutionMs });
  lag.enable();
  const startSeconds = performance.timeOrigin / 1_000;
  let kept: { readonly atMs: number; readonly figures: ProcessFigures } | undefined;
  return () => {
    const atMs = performance.now();
    if (kept !== undefined && atMs - kept.atMs < keptMs) return kept.figures;
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const figures = {
      cpuSeconds: (user + system) / 1e6,
      residentBytes: rss,
      heapUsedBytes: heapUsed,
      startSeconds,
      eventLoopLagSeconds: {
        mean: seconds(lag.mean),
        p99: seconds(lag.percentile(99)),
        max: seconds(lag.max),
      },
      eventLoopBusySeconds: performance.eventLoopUtilization().active / 1_000,
    };
    lag.reset();
    kept = { atMs, figures };
    return figures;
  };
}

/** Node measures nanoseconds from one tick to the next, of which the resolution is no lag. */
function seconds(nanoseconds: number): number {
  const late = nanoseconds / 1e9 - resolutionMs / 1_000;
  return Number.isFinite(late) ? Math.max(late, 0) : 0;
}
