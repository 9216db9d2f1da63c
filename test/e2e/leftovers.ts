/** The processes of a test, found by the folder that is the test's own, and their end. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const endTimeoutMs = 30_000;

export interface FoundProcess {
  readonly pid: number;
  /** Program and arguments. */
  readonly words: string;
}

/** Processes with the folder anywhere among their words, but for this one. */
export function processesOf(folder: string): FoundProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const pid = Number(name);
      return words.includes(folder) && pid !== process.pid ? [{ pid, words }] : [];
    } catch {
      // It has ended since it was listed.
      return [];
    }
  });
}

/**
 * Ends them by SIGKILL until there are none: one that is just being started, say a machine that a
 * BMC switches on, is met by the next look.
 */
export async function endProcessesOf(folder: string): Promise<void> {
  for (const endMs = Date.now() + endTimeoutMs; ; ) {
    const found = processesOf(folder);
    if (found.length === 0) return;
    if (Date.now() > endMs) {
      throw new Error(`still there: ${found.map(({ words }) => words).join('; ')}`);
    }
    for (const { pid } of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    await sleep(20);
  }
}
