/** Processes as /proc shows them, and how some of them are ended. */
import type { Clock } from '@rackwright/platform';
import { namesIn, readBytes, readText } from './sys-files.ts';

const pollMs = 100;

export interface ProcessFacts {
  /** "Z": it has ended, and only its number is left. */
  readonly state: string;
  readonly group: number;
  /** Clock ticks since the kernel started (proc(5), field 22). */
  readonly startTicks: string;
}

/** State, group and start of a process; undefined when there is none. */
export async function readProcess(
  procRoot: string,
  pid: number,
): Promise<ProcessFacts | undefined> {
  const stat = await readText(procRoot, String(pid), 'stat');
  // The name, in parentheses, may hold anything; fields count from after its end: state is 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, , group] = fields;
  const startTicks = fields[22 - 3];
  if (state === undefined || group === undefined || startTicks === undefined) return undefined;
  return { state, group: Number(group), startTicks };
}

/** The living processes that satisfy `wanted`. */
export async function processesWhere(
  procRoot: string,
  wanted: (pid: number, facts: ProcessFacts) => boolean | Promise<boolean>,
): Promise<number[]> {
  const found: number[] = [];
  for (const name of await namesIn(procRoot)) {
    if (!/^\d+$/.test(name)) continue;
    const pid = Number(name);
    const facts = await readProcess(procRoot, pid);
    if (facts === undefined || facts.state === 'Z') continue;
    if (await wanted(pid, facts)) found.push(pid);
  }
  return found;
}

/** Whether the process was started with "NAME=VALUE" in its environment. */
export async function hasVariable(
  procRoot: string,
  pid: number,
  assignment: string,
): Promise<boolean> {
  const environment = Buffer.from(await readBytes(procRoot, String(pid), 'environ'));
  return environment.toString('utf8').split('\0').includes(assignment);
}

/**
 * Calls `end` for the processes that `find` finds until there is none: a process in the middle of a
 * disk operation may outlive its SIGKILL for a while. Returns the rest after `timeoutMs`.
 */
export async function endAll(
  clock: Clock,
  timeoutMs: number,
  find: () => Promise<number[]>,
  end: (left: readonly number[]) => void,
): Promise<readonly number[]> {
  const endAtMs = clock.suspendAwareMs() + timeoutMs;
  for (;;) {
    const left = await find();
    if (left.length === 0 || clock.suspendAwareMs() > endAtMs) return left;
    end(left);
    await new Promise<void>((resolve) => {
      clock.after(pollMs, resolve);
    });
  }
}
