/** CPU time of a server as the kernel counts it: all its threads, and its children. */
import { readFileSync } from 'node:fs';

/** USER_HZ, which Linux fixes at 100 for what it tells in /proc. */
const ticksPerSecond = 100;

/**
 * Not every server waits for its children, and of those that nobody waited for nothing is left: so
 * they are looked at every 10 ms while they live. Of each child the time since the last look is
 * lost, which flatters such a server.
 */
export class CpuMeter {
  readonly #pid: number;
  readonly #ticks = new Map<number, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#look(), 10);
    this.#look();
  }

  /** Milliseconds so far, in steps of 10. */
  readMs(): number {
    this.#look();
    const ticks = [...this.#ticks.values()].reduce((sum, one) => sum + one, 0);
    return (ticks * 1_000) / ticksPerSecond;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) {
      const ticks = ticksOf(pid);
      if (ticks !== undefined) this.#ticks.set(pid, ticks);
    }
  }
}

/** utime and stime of all threads (proc_pid_stat(5)); undefined when the process has ended. */
function ticksOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return undefined;
  }
}

/** None when the process has ended. */
function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return children === '' ? [] : children.split(' ').map(Number);
  } catch {
    return [];
  }
}
