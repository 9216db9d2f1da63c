import type { Clock } from '@rackwright/platform';

/** Resolves when it is aborted; never rejects. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Resolves after `delayMs`, or as soon as `signal` aborts; never rejects. */
export async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const stop = (): void => over.resolve();
  const cancel = clock.after(delayMs, stop);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  await over.promise;
  signal.removeEventListener('abort', stop);
  cancel();
}
