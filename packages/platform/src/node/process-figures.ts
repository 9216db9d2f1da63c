/** Figures of the process that this is. */
import type { monitorEventLoopDelay } from 'node:perf_hooks';
import type { ProcessFigures } from '../process-figures.ts';

/** How often the lag of the event loop is sampled, milliseconds. */
const resolutionMs = 50;
type Lag = ReturnType<typeof monitorEventLoopDelay>;

/** Readers within this time get the same figures, milliseconds. */
const keptMs = 500;

/**
 * Reads the figures. The lag is measured from the first reading on, which has none itself: nobody
 * pays for it until figures are read. Nothing of it keeps the process alive.
 */
export function nodeProcessFigures(): () => ProcessFigures {
  let measured: Lag | undefined;
  let kept: { readonly atMs: number; readonly figures: ProcessFigures } | undefined;
  return () => {
    const atMs = performance.now();
    if (kept !== undefined && atMs - kept.atMs < keptMs) return kept.figures;
    measured ??= measureLag();
    const lag = measured;
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const figures = {
      cpuSeconds: (user + system) / 1e6,
      residentBytes: rss,
      heapUsedBytes: heapUsed,
      startSeconds: performance.timeOrigin / 1_000,
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

function measureLag(): Lag {
  // Loaded only now: a start does not wait for it.
  const lag = process
    .getBuiltinModule('node:perf_hooks')
    .monitorEventLoopDelay({ resolution: resolutionMs });
  lag.enable();
  return lag;
}

/** Node measures nanoseconds from one tick to the next, of which the resolution is no lag. */
function seconds(nanoseconds: number): number {
  const late = nanoseconds / 1e9 - resolutionMs / 1_000;
  return Number.isFinite(late) ? Math.max(late, 0) : 0;
}
