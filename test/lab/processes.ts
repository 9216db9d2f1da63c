/**
 * Starts programs for the lab and ends them by their process id, never by a name.
 *
 * 1. A started program gets SIGKILL from the kernel should the lab itself be killed (setpriv).
 * 2. Its output goes to a file of its own.
 */
import { execFile, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Undo } from './undo.ts';

const execFileAsync = promisify(execFile);
const RUN_TIMEOUT_MS = 300_000;
const STOP_GRACE_MS = 5_000;
const LOOK_PERIOD_MS = 50;
const LOOK_PERIOD_MAX_MS = 3_000;
/** How long to wait after a look, as a multiple of what it took. */
const PAUSE_PER_LOOK = 5;
const LOG_TAIL_LINES = 15;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** A program that runs in the background. */
export interface Started {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Settles with the exit code, or the name of the signal, once it has ended. */
  readonly ended: Promise<number | string>;
  isRunning(): boolean;
  signal(name: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL when it stays. Settles when it is gone. */
  stop(): Promise<void>;
}

/** What to start. */
export interface StartRequest {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly logFile: string;
  /** Network namespace to run in. */
  readonly namespace?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Starts a program; `undo` ends it at last. */
export function startProcess(undo: Undo, request: StartRequest): Started {
  const inside = [request.file, ...request.args];
  const command = request.namespace === undefined ? inside : within(request.namespace, inside);
  const log = openSync(request.logFile, 'a');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...command], {
    stdio: ['ignore', log, log],
    env: { ...process.env, ...request.environment },
    ...(request.cwd === undefined ? {} : { cwd: request.cwd }),
  });
  closeSync(log);
  if (child.pid === undefined) throw new Error(`${request.name}: setpriv could not be started`);
  const pid = child.pid;
  let running = true;
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => {
      running = false;
      resolve(code ?? signal ?? 'unknown');
    });
  });
  const started: Started = {
    name: request.name,
    pid,
    logFile: request.logFile,
    ended,
    isRunning: () => running,
    signal: (name) => void (running && child.kill(name)),
    stop: async () => {
      if (!running) return;
      child.kill('SIGTERM');
      const gone = await Promise.race([
        ended.then(() => true),
        sleep(STOP_GRACE_MS, false, { ref: false }),
      ]);
      if (!gone) child.kill('SIGKILL');
      await ended;
    },
  };
  undo.add(`end ${request.name}`, () => started.stop());
  return started;
}

/** Runs a program to its end and answers what it printed; throws with its words when it fails. */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: {
    readonly namespace?: string;
    readonly input?: string;
    readonly timeoutMs?: number;
  } = {},
): Promise<string> {
  const inside = [file, ...args];
  const [head = file, ...rest] =
    options.namespace === undefined ? inside : within(options.namespace, inside);
  try {
    const running = execFileAsync(head, rest, {
      timeout: options.timeoutMs ?? RUN_TIMEOUT_MS,
      killSignal: 'SIGKILL',
      maxBuffer: OUTPUT_BYTES_MAX,
    });
    running.child.stdin?.on('error', () => {}); // it may end without reading; its exit code tells
    running.child.stdin?.end(options.input ?? '');
    return (await running).stdout;
  } catch (error) {
    const text = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`${file} ${args.join(' ')}: ${text === '' ? String(error) : text}`, {
      cause: error,
    });
  }
}

/** Runs a program to its end, whatever that is. Code -1: it was ended by a signal. */
export function tryProgram(
  command: readonly string[],
  options: {
    readonly environment?: Readonly<Record<string, string>>;
    /** As a function: what it says once it has come. */
    readonly input?: string | (() => Promise<string>);
    readonly timeoutMs?: number;
  },
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const [file = '', ...args] = command;
  const environment = { ...process.env, ...options.environment };
  return new Promise((resolve, reject) => {
    const limits = {
      timeout: options.timeoutMs ?? RUN_TIMEOUT_MS,
      killSignal: 'SIGKILL',
      maxBuffer: OUTPUT_BYTES_MAX,
    } as const;
    const child = execFile(file, args, { ...limits, env: environment }, (error, out, err) => {
      if (child.pid === undefined)
        reject(new Error(`${file} could not be started`, { cause: error }));
      else resolve({ code: child.exitCode ?? -1, out, err });
    });
    child.stdin?.on('error', () => {}); // it may end without reading; its exit code tells
    const { input = '' } = options;
    if (typeof input === 'string') child.stdin?.end(input);
    else {
      input().then(
        (text) => child.stdin?.end(text),
        (cause: unknown) => {
          child.kill('SIGKILL');
          reject(cause);
        },
      );
    }
  });
}

/** The command that runs `command` inside a network namespace, in the same process. */
export function within(namespace: string, command: readonly string[]): string[] {
  return ['ip', 'netns', 'exec', namespace, ...command];
}

/** The last lines of a log file, for an error message. */
export function logTail(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  } catch {
    return '(no log)';
  }
}

/**
 * Waits until `condition` holds; throws `what` when it does not within `limitMs`, with the end of
 * `logFile`. What takes long to look at, because it starts a program, is looked at less often: the
 * machines have the same processors.
 */
export async function until(
  what: string,
  limitMs: number,
  condition: () => boolean | Promise<boolean>,
  logFile?: string,
): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const lookedAt = performance.now();
    if (await condition()) return;
    const now = performance.now();
    if (now - startedAt > limitMs) {
      const log = logFile === undefined ? '' : `; its log ends:\n${logTail(logFile)}`;
      throw new Error(`${what} did not happen within ${limitMs / 1000} s${log}`);
    }
    await sleep(Math.min(LOOK_PERIOD_MAX_MS, LOOK_PERIOD_MS + (now - lookedAt) * PAUSE_PER_LOOK));
  }
}
