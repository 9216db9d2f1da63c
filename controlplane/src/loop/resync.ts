/**
 * The slow resync: a pass over everything, to find what a lost watch or a lost wake-up has missed.
 */
import type { Clock, Log } from '@rackwright/platform';

export interface ResyncParts {
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Pick<Log, 'warn'>;
  readonly resyncIntervalMs: number;
}

/** Passes an interval from now, and again an interval after each pass, until `signal` aborts. */
export function resyncLater(
  parts: ResyncParts,
  check: () => Promise<void> | void,
  signal: AbortSignal,
): void {
  if (signal.aborted) return;
  const { clock, log, resyncIntervalMs } = parts;
  const again = async () => {
    signal.removeEventListener('abort', cancel);
    try {
      await check();
    } catch (error) {
      log.warn({}, 'the resync failed', error);
    }
    resyncLater(parts, check, signal);
  };
  const cancel = clock.after(resyncIntervalMs, () => void again());
  signal.addEventListener('abort', cancel, { once: true });
}
