/**
 * `--wait` and `--timeout` of the commands that start work.
 *
 * Invariant: Ctrl-C ends the wait and never the work, and says where to look.
 */

import type { CommandIo } from '../../command-io.ts';
import { InterruptedError, UsageError } from '../../failure.ts';
import { parseDuration } from '../../output/time.ts';

/** `--wait` and `--timeout`. */
export const waitFlags = {
  wait: {
    kind: 'boolean',
    default: false,
    withNegated: false,
    brief: 'Wait for what was started, and show its progress',
  },
  timeout: {
    kind: 'parsed',
    parse: parseTimeout,
    optional: true,
    brief: 'End the wait (14) after so many seconds, or as 90s, 30m, 2h; the work goes on',
    placeholder: 'time',
  },
} as const;

/** Values of `waitFlags`; the time in seconds. */
export interface WaitFlags {
  readonly wait: boolean;
  readonly timeout?: number;
}

/** Seconds of "90", "90s", "30m", "2h" or "3d". Throws for anything else, or for none. */
export function parseTimeout(text: string): number {
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (parseDuration(text) ?? 0) / 1_000;
  if (seconds > 0) return seconds;
  throw new SyntaxError(`"${text}" is no time; it must be seconds as 90, or as 90s, 30m, 2h or 3d`);
}

/** Throws `UsageError` where a time is given for no wait. */
export function checkWait({ wait, timeout }: WaitFlags): void {
  if (timeout !== undefined && !wait)
    throw new UsageError('--timeout ends a wait: give --wait too');
}

/** Throws `Interrupted` once the person has left; `showCommand` shows the work. */
export function checkInterrupted({ signal }: CommandIo, showCommand: string): void {
  if (signal.aborted)
    throw new InterruptedError(`no longer waiting; the work goes on: \`${showCommand}\``);
}
