/**
 * Shows work under way on standard error while a command waits for it.
 *
 * Invariant: on a terminal there is one line, which is gone when the wait is over; elsewhere each
 * line is printed once, and nothing moves a cursor.
 */

import type { CommandIo } from '../../command-io.ts';
import { barLine, plainLine, type WorkProgress } from '../../output/progress.ts';

/** How often a bar is drawn again, milliseconds: its times move though nothing else does. */
const drawEveryMs = 1_000;

/** The place where progress is shown. */
export interface ProgressView {
  /** Shows the result of `see` from now on; on a terminal it is called again every second. */
  show(see: () => WorkProgress): void;
  /** Ends it; nothing of a bar stays. */
  end(): void;
}

/** Shows nothing. */
export const noView: ProgressView = { show: () => undefined, end: () => undefined };

/** Progress on standard error. */
export function progressView(io: CommandIo): ProgressView {
  const { err, clock } = io;
  return err.columns === undefined ? plainView(io) : barView(err.columns);

  function barView(columns: number): ProgressView {
    let see: (() => WorkProgress) | undefined;
    let cancel: (() => void) | undefined;
    const draw = () => {
      if (see === undefined) return;
      err.write(`\r\x1b[K${barLine(see(), err.columns ?? columns)}`);
      cancel = clock.after(drawEveryMs, draw);
    };
    return {
      show: (next) => {
        cancel?.();
        see = next;
        draw();
      },
      end: () => {
        cancel?.();
        if (see !== undefined) err.write('\r\x1b[K');
        see = undefined;
      },
    };
  }
}

function plainView({ err, clock }: CommandIo): ProgressView {
  let last = '';
  return {
    show: (see) => {
      const line = plainLine(see());
      if (line !== last) err.write(`${timeOfDay(clock.nowMs())}  ${line}\n`);
      last = line;
    },
    end: () => undefined,
  };
}

/** "12:34:56", UTC */
export function timeOfDay(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(11, 19);
}
