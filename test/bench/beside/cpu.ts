/**
 * CPU time of a server as the kernel counts it: all its threads, and its children. It is read in
 * nanoseconds, from the scheduler's figures (Documentation/scheduler/sched-stats.rst): those of
 * proc_pid_stat(5) have steps of 10 ms, which are a good part of a round.
 */
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Not every server waits for its children, and of those that nobody waited for nothing is left: so
 * they are looked at every 10 ms while they live. Of each child the time since the last look is
 * lost, which flatters such a server.
 */
export class CpuMeter {
  readonly #pid: number;
  /** By thread. */
  readonly #nanoseconds = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#look(), 10);
    this.#look();
  }

  /** Milliseconds so far. */
  readMs(): number {
    this.#look();
    return [...this.#nanoseconds.values()].reduce((sum, one) => sum + one, 0) / 1e6;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) {
      for (const thread of threadsOf(pid)) {
        const nanoseconds = nanosecondsOf(thread);
        if (nanoseconds !== undefined) this.#nanoseconds.set(thread, nanoseconds);
      }
    }
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
function nanosecondsOf(thread: string): number | undefined {
  try {
    return Number(readFileSync(`${thread}/schedstat`, 'utf8').split(' ')[0]);
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
