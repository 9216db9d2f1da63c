/** The processes of a test, found by the folder that is the test's own, and their end. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const endTimeoutMs = 30_000;

export interface FoundProcess {
  readonly pid: number;
  /** Program and arguments. */
  readonly commandLine: string;
}

/** What can be told of a process of this user, and of every one by root. */
export interface ProcessFacts extends FoundProcess {
  /** `NAME=value` as it was when the program began. */
  environment(): readonly string[];
}

/** The processes that are asked for, but for this one. */
export function processesWith(asked: (facts: ProcessFacts) => boolean): FoundProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => {
    const pid = Number(name);
    if (pid === process.pid) return [];
    const commandLine = stringsOf(name, 'cmdline').join(' ');
    const environment = () => stringsOf(name, 'environ');
    return asked({ pid, commandLine, environment }) ? [{ pid, commandLine }] : [];
  });
}

/** Processes with the folder anywhere among their words, but for this one. */
export function processesOf(folder: string): FoundProcess[] {
  return processesWith(({ commandLine }) => commandLine.includes(folder));
}

/** Empty for a process that has ended since it was listed, and for a file of another user. */
function stringsOf(pid: string, file: 'cmdline' | 'environ'): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

export function endProcessesOf(folder: string): Promise<void> {
  return endProcesses(() => processesOf(folder));
}

/**
 * Ends them by SIGKILL until there are none: one that is just being started, say a machine that a
 * BMC switches on, is met by the next look.
 */
export async function endProcesses(find: () => readonly FoundProcess[]): Promise<void> {
  for (const endMs = Date.now() + endTimeoutMs; ; ) {
    const found = find();
    if (found.length === 0) return;
    if (Date.now() > endMs) {
      throw new Error(`still there: ${found.map(({ commandLine }) => commandLine).join('; ')}`);
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
