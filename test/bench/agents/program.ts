/** A program of the benchmark: started, asked by IPC, looked at by the system's own counts. */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Order } from './client.ts';

export interface Usage {
  readonly rssKiB: number;
  readonly peakKiB: number;
  readonly cpuMs: number;
}

/** Linux counts CPU time in hundredths of a second. */
const tickMs = 10;

/** What is measured, or measures, comes before what only makes work. */
export type Rank = 'measured' | 'load';

const loadNiceness = 10;
const realtimePriority = { measured: '2', load: '1' };

/** `isRealtime`: as processes that others on this machine cannot delay, which takes root. */
export function rankProcess(pid: number, rank: Rank, isRealtime: boolean): void {
  if (isRealtime) execFileSync('chrt', ['-a', '-r', '-p', realtimePriority[rank], String(pid)]);
  else if (rank === 'load') setPriority(pid, loadNiceness);
}

export class Program {
  readonly #child: ChildProcess;

  constructor(
    file: string,
    args: readonly string[],
    rank: Rank,
    { isRealtime, execArgv }: { readonly isRealtime: boolean; readonly execArgv?: string[] },
  ) {
    const options = { serialization: 'advanced', stdio: 'inherit' } as const;
    this.#child = fork(file, args, execArgv === undefined ? options : { ...options, execArgv });
    if (this.#child.pid !== undefined) rankProcess(this.#child.pid, rank, isRealtime);
  }

  /** What the program says next, by itself. */
  said<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error('a program of the benchmark has ended'));
      this.#child.once('exit', gone);
      this.#child.once('message', (message) => {
        this.#child.off('exit', gone);
        resolve(message as T);
      });
    });
  }

  async ask<T>(order: Order): Promise<T> {
    const answer = this.said<{ result?: T; error?: string }>();
    this.#child.send(order);
    const { result, error } = await answer;
    if (error !== undefined) throw new Error(`${order.kind}: ${error}`);
    return result as T;
  }

  usage(): Usage {
    const status = this.#read('status');
    const kib = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]);
    // The program's name, in brackets, may hold anything.
    const fields = this.#read('stat').split(') ').at(-1)?.split(' ') ?? [];
    const cpuMs = (Number(fields[11]) + Number(fields[12])) * tickMs;
    return { rssKiB: kib('VmRSS'), peakKiB: kib('VmHWM'), cpuMs };
  }

  /** The peak is what it is now. */
  forgetPeak(): void {
    writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5');
  }

  #read(name: string): string {
    return readFileSync(`/proc/${this.#child.pid}/${name}`, 'utf8');
  }

  /** Asks it to end, and insists after a while. */
  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    const insist = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(insist);
  }
}
