/** One of our processes in this benchmark: told by IPC what to do, and looked at from outside. */
import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installedArguments } from '../installed.ts';

export class Part<Told, Said> {
  readonly #name: string;
  readonly #child: ChildProcess;
  /** Keeps what comes before it is asked for. */
  readonly #messages: AsyncIterator<unknown[]>;

  constructor(script: string, args: readonly string[]) {
    this.#name = script;
    const path = join(import.meta.dirname, script);
    const execArgv = [...process.execArgv, ...installedArguments('agent')];
    this.#child = fork(path, args, { execArgv });
    this.#messages = on(this.#child, 'message', { close: ['exit'] });
  }

  tell(told: Told): void {
    this.#child.send(told as object);
  }

  /** What it says next. */
  async said(): Promise<Said> {
    const next = await this.#messages.next();
    if (next.done === true) throw new Error(`${this.#name} has ended before its work was done`);
    return next.value[0] as Said;
  }

  /** The most memory that it has had at once; while it runs. */
  peakMib(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  /** Processor time that it has used so far, seconds (proc(5), `stat`: ticks of 10 ms). */
  cpuSeconds(): number {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ');
    return (Number(fields?.[11]) + Number(fields?.[12])) / 100;
  }

  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
