import type { Clock } from './clock.ts';

/** Resolves after `delayMs`, or as soon as `signal` aborts; never rejects. */
export async function pause(
  clock: Pick<Clock, 'after'>,
  delayMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const over = Promise.withResolvers<void>();
  const stop = (): void => over.resolve();
  const cancel = clock.after(delayMs, stop);
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  await over.promise;
  signal?.removeEventListener('abort', stop);
  cancel();
}
