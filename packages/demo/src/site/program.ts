/**
 * One long-lived program of the demo as a process, started again when it dies, as an init system
 * would. Each is a process group of its own: Ctrl-C in the terminal is the demo's to decide about.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';

export interface ProgramOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly log: string;
  readonly environment: Readonly<Record<string, string>>;
}

const restartDelayMs = 300;
const logLinesShown = 12;

export class Program {
  readonly #options: ProgramOptions;
  #child: ChildProcess | undefined;
  #wanted = false;
  #restart: NodeJS.Timeout | undefined;

  constructor(options: ProgramOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): void {
    this.#wanted = true;
    if (this.#child !== undefined) return;
    const { program, args, log, environment } = this.#options;
    const output = openSync(log, 'a');
    const child = spawn(process.execPath, [program, ...args], {
      detached: true,
      env: environment,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    this.#child = child;
    child.once('error', () => {});
    child.once('exit', () => {
      this.#child = undefined;
      if (this.#wanted) this.#restart = setTimeout(() => this.start(), restartDelayMs);
    });
  }

  /** Ends it as a power cut would, and keeps it away until `start`. */
  async kill(): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** The end of its output. */
  lastLines(): string {
    try {
      const lines = readFileSync(this.#options.log, 'utf8').trimEnd().split('\n');
      return lines.slice(-logLinesShown).join('\n');
    } catch {
      return '(it said nothing)';
    }
  }
}
