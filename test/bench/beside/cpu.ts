/**
 * CPU time of a server as the kernel counts it: all its threads, and its children. Threads that
 * live are read in nanoseconds, from the scheduler's figures
 * (Documentation/scheduler/sched-stats.rst). The time of ended ones is in those of
 * proc_pid_stat(5) only, whose steps of 10 ms are a good part of a round.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ, which Linux fixes at 100 for what it tells in /proc. */
const ticksPerSecond = 100;

/**
 * Not every server waits for its children, and of those that nobody waited for nothing is left: so
 * they are read every 10 ms while they live. Of each child the time since the last reading is lost,
 * which flatters such a server.
 */
export class CpuMeter {
  readonly #pid: number;
  /** Milliseconds by process. */
  readonly #used = new Map<number, number>();
  readonly #timer: NodeJS.Timeout;

  /** Throws where the kernel has no figures of its scheduler. */
  constructor(pid: number) {
    readFileSync('/proc/self/schedstat');
    this.#pid = pid;
    this.#timer = setInterval(() => this.#read(), 10);
    this.#read();
  }

  /** Milliseconds so far. */
  readMs(): number {
    this.#read();
    return [...this.#used.values()].reduce((sum, one) => sum + one, 0);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #read(): void {
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) {
      const inThreads = threadsOf(pid).reduce((sum, one) => sum + (millisecondsOf(one) ?? 0), 0);
      const before = this.#used.get(pid) ?? 0;
      this.#used.set(pid, Math.max(before, inThreads, steppedMillisecondsOf(pid) ?? 0));
    }
  }
}

/** utime and stime of all threads, also ended ones; undefined when the process has ended. */
function steppedMillisecondsOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
  } catch {
    return undefined;
  }
}

/** Their folders in /proc; none when the process has ended. */
function threadsOf(pid: number): string[] {
  const folder = `/proc/${pid}/task`;
  try {
    return readdirSync(folder).map((thread) => `${folder}/${thread}`);
  } catch {
    return [];
  }
}

/** The time on a processor; undefined when the thread has ended. */
function millisecondsOf(thread: string): number | undefined {
  try {
    return Number(readFileSync(`${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
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
