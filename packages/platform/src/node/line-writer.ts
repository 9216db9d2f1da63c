/**
 * Writes the lines of a log to a file descriptor.
 *
 * W1 A line is written before the call returns.
 * W2 A call never throws. It waits at most `waitMsMax` for room in a pipe, and not again before a
 *    line is written.
 * W3 A line that cannot be written is dropped. The next line that is written follows a line with
 *    the number of those lost.
 */
import { writeSync } from 'node:fs';
import { errorCode } from '../error-text.ts';

/** The longest wait for room in a pipe that does not block, in milliseconds. */
export const waitMsMax = 5_000;

/** Between two attempts to write into a full pipe. */
const busyMs = 10;

/** Once nobody reads the descriptor any more, all lines are dropped: work goes on. */
export function lineWriter(fd: number, waitMs = waitMsMax): (line: string) => void {
  let isRead = true;
  let lost = 0;
  // Of the last line, only a part was written.
  let isTorn = false;
  const attempt = (text: string): boolean => {
    let rest: Uint8Array = Buffer.from(isTorn ? `\n${text}` : text);
    let leftMs = lost === 0 ? waitMs : 0;
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
        isTorn = rest.length > 0;
      } catch (cause) {
        const code = errorCode(cause);
        if (code === 'EPIPE') isRead = false;
        if (code !== 'EAGAIN' || leftMs <= 0) return false;
        leftMs -= busyMs;
        waitHere(busyMs);
      }
    }
    return true;
  };
  return (line) => {
    if (!isRead) return;
    if (lost > 0 && attempt(lostLine(lost))) lost = 0;
    if (lost > 0 || !attempt(line)) lost += 1;
  };
}

function lostLine(lost: number): string {
  const time = new Date().toISOString();
  const message = 'log lines could not be written and are lost';
  return `${JSON.stringify({ level: 'warn', time, lost, message })}\n`;
}

/** For a descriptor that does not block, which another program may have made so. */
function waitHere(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
