/** The deadline of an operation as a signal, for what is done before a runner has it. */
import type { Clock } from '@rackwright/platform';
import type { OperationContext } from '../session/index.ts';

/** Longest timer; a later deadline is another's to watch. */
const timerMsMax = 24 * 3_600_000;

export interface TimeLimit {
  /** Aborted with the operation, and when its time is over. */
  readonly signal: AbortSignal;
  isOver(): boolean;
  /** It is watched no more. */
  end(): void;
}

export function timeLimit(
  clock: Clock,
  { remainingMs, signal }: Pick<OperationContext, 'remainingMs' | 'signal'>,
): TimeLimit {
  const late = new AbortController();
  const delayMs = Math.max(0, Math.min(remainingMs(), timerMsMax));
  const end = clock.after(delayMs, () => late.abort());
  return {
    signal: AbortSignal.any([signal, late.signal]),
    isOver: () => late.signal.aborted,
    end,
  };
}

/** Resolves after `waitMs`, or when the signal is aborted. */
export function pause(clock: Clock, waitMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      cancel();
      signal.removeEventListener('abort', settle);
      resolve();
    };
    const cancel = clock.after(waitMs, settle);
    signal.addEventListener('abort', settle, { once: true });
  });
}

/** Resolves when it is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
