/**
 * Starts a worker and watches it: a worker that hangs, waits for ever or dies names its input.
 *
 * W1 Only processor time makes a hang: on a busy machine a worker may take as long as it likes.
 * W2 Its heap is limited, so that what is without bound ends the worker, not the machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Noted, readNoted } from './noted-input.ts';
import type { Failure } from './target.ts';
import type { Task } from './task.ts';

const heapMebibytes = 256;
const pollMs = 100;
/** So often in a row a worker may be found asleep over one input. */
const sleepingPollsMax = 150;
/** How often the kernel counts processor time each second (USER_HZ). */
const ticksPerSecond = 100;
/** What a process of Node ends with when its main module waits for what never comes. */
const unsettledExit = 13;

export type WorkerEnd =
  | { readonly kind: 'answered'; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly input: Uint8Array };

export async function runWorker(task: Task, hangCpuMs: number): Promise<WorkerEnd> {
  const worker = startWorker(task);
  const output = collect(worker);
  const watch = watchProgress(worker, task.notedPath, hangCpuMs);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    worker.on('error', reject);
    worker.on('close', (...end) => resolve(end));
  });
  const stopped = watch.end();
  if (code === 0) {
    return { kind: 'answered', answer: JSON.parse(output.out().trim().split('\n').at(-1) ?? '') };
  }
  const noted = readNoted(task.notedPath);
  if (noted.count === 0) throw new Error(`${task.target}: no worker starts\n${output.errors()}`);
  const failure = stopped ?? deathOf(code, signal, output.errors());
  return { kind: 'failed', failure, input: noted.input };
}

function startWorker(task: Task): ChildProcess {
  const script = fileURLToPath(new URL('worker.main.ts', import.meta.url));
  const flags = [`--max-old-space-size=${heapMebibytes}`, '--expose-gc', '--single-threaded-gc'];
  const args = [...flags, script, JSON.stringify(task)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
}

function collect(worker: ChildProcess) {
  let [out, errors] = ['', ''];
  worker.stdout?.on('data', (chunk) => {
    out += chunk;
  });
  worker.stderr?.on('data', (chunk) => {
    errors = `${errors}${chunk}`.slice(-4_000);
  });
  return { out: () => out, errors: () => errors };
}

function deathOf(code: number | null, signal: string | null, errors: string): Failure {
  if (code === unsettledExit) {
    return { kind: 'unsettled', signature: 'call', text: 'the call waits for what never comes' };
  }
  if (/heap out of memory|allocation failed/i.test(errors)) {
    const text = `the call needs more than ${heapMebibytes} MiB of heap`;
    return { kind: 'memory', signature: 'heap', text };
  }
  const [first = ''] = errors.split('\n').filter((line) => /Error|FATAL/.test(line));
  const text = `the process ends with ${code ?? signal}: ${first}`;
  return { kind: 'thrown', signature: `process: ${first}`, text };
}

/** Kills the worker when one input takes all too long, and says so at the end. */
function watchProgress(worker: ChildProcess, notedPath: string, hangCpuMs: number) {
  let failure: Failure | undefined;
  let seen: Noted | undefined;
  let cpuMsThen = 0;
  let sleepingPolls = 0;
  const timer = setInterval(() => {
    const now = readNoted(notedPath);
    const state = processState(worker.pid);
    if (now.count === 0 || state === undefined) return;
    if (now.count !== seen?.count) {
      seen = now;
      cpuMsThen = state.cpuMs;
      sleepingPolls = 0;
      return;
    }
    sleepingPolls = state.sleeps ? sleepingPolls + 1 : 0;
    if (state.cpuMs - cpuMsThen > hangCpuMs) {
      const text = `the call has not ended after ${hangCpuMs} ms of a processor`;
      failure = { kind: 'hang', signature: 'call', text };
    } else if (sleepingPolls > sleepingPollsMax) {
      const text = 'the call waits, and nothing computes';
      failure = { kind: 'unsettled', signature: 'call', text };
    }
    if (failure !== undefined) worker.kill('SIGKILL');
  }, pollMs);
  return {
    end: () => {
      clearInterval(timer);
      return failure;
    },
  };
}

/** Of the kernel; undefined: the process has ended. */
function processState(pid = 0): { cpuMs: number; sleeps: boolean } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { cpuMs: (ticks * 1_000) / ticksPerSecond, sleeps: fields[0] === 'S' };
}
