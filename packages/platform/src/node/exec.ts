/**
 * Runs programs of this machine.
 *
 * X1 The child gets PATH and LC_ALL=C and nothing else of our environment.
 * X2 `run` settles within `timeoutMs` plus two seconds, even when the child cannot be killed (a
 *    process waiting for a dead disk ignores SIGKILL), and never rejects.
 * X3 When it settles, the child's process group has been sent SIGKILL: nothing is left behind but
 *    processes that have moved themselves into another session. With `group: 'ours'` the child
 *    stays in our group, so a signal that ends our group ends it too; then only the child itself is
 *    killed here.
 * X4 At most `outputBytesMax` bytes of each output are kept; the rest is read and dropped, so that
 *    a chatty child does not block.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { errorText } from '../error-text.ts';
import type { Exec, ExecRequest, ExecResult } from '../exec.ts';

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** How long a killed child may take to close its outputs, milliseconds (X2). */
const killGraceMs = 2_000;

/** The exit code of a child that died of signal n is this plus n, as in a shell. */
const signalCodeBase = 128;

/** The process group that children run in (X3). */
export type ExecGroup = 'own' | 'ours';

/** Programs are looked up in `path`, a list of folders separated by colons. */
export function nodeExec(path: string = defaultPath, group: ExecGroup = 'own'): Exec {
  return { run: (request, signal) => run(request, path, group, signal) };
}

/**
 * Aborting kills the process group; the result is then `exited` with code 137, as after any other
 * SIGKILL.
 */
async function run(
  request: ExecRequest,
  path: string,
  group: ExecGroup,
  signal?: AbortSignal,
): Promise<ExecResult> {
  if (signal?.aborted === true) return { kind: 'notStarted', message: 'aborted before the start' };
  let child: PipedChild;
  try {
    const spawned = spawn(request.file, request.args, {
      cwd: '/',
      env: { PATH: path, LC_ALL: 'C' },
      detached: group === 'own',
      stdio: ['pipe', 'pipe', 'pipe', ...(request.descriptors ?? [])],
    });
    // Its outputs are pipes, by the options above; Node's types do not express that.
    child = spawned as PipedChild;
  } catch (error) {
    return { kind: 'notStarted', message: errorText(error) };
  }
  const stdout = collect(child.stdout, request.outputBytesMax);
  const stderr = collect(child.stderr, request.outputBytesMax);
  // A child that does not read its input closes the pipe: its exit code shows the cause.
  child.stdin.on('error', () => {});
  giveInput(child.stdin, request);
  if (request.onOutput !== undefined) child.stdout.on('data', request.onOutput);
  const end = await ended(child, request.timeoutMs, group, signal);
  switch (end.kind) {
    case 'notStarted':
      return end;
    case 'timedOut':
      return { kind: 'timedOut', stdout: stdout(), stderr: stderr() };
    case 'exited':
      return { kind: 'exited', code: end.code, stdout: stdout(), stderr: stderr() };
  }
}

function giveInput(input: Writable, { stdin = '', inputOpenUntil: until }: ExecRequest): void {
  if (until === undefined || until.aborted) {
    input.end(stdin);
    return;
  }
  const close = (): void => void input.end();
  input.write(stdin);
  until.addEventListener('abort', close, { once: true });
  input.once('close', () => until.removeEventListener('abort', close));
}

type PipedChild = ChildProcess & {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
};

type End =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'notStarted'; readonly message: string };

/** Settles when outputs are closed and the child is gone, or `killGraceMs` after the kill. */
function ended(
  child: PipedChild,
  timeoutMs: number,
  group: ExecGroup,
  signal: AbortSignal | undefined,
): Promise<End> {
  return new Promise((resolve) => {
    let end: End | undefined;
    let graceTimer: NodeJS.Timeout | undefined;
    const settle = (): void => {
      clearTimeout(timeoutTimer);
      clearTimeout(graceTimer);
      signal?.removeEventListener('abort', killGroup);
      resolve(end ?? { kind: 'timedOut' });
    };
    const killGroup = (): void => {
      // `kill` of a child that has ended does nothing: its number may be another's by now.
      if (group === 'ours') child.kill('SIGKILL');
      else sendSigkill(child.pid);
      graceTimer ??= setTimeout(() => {
        child.stdin.destroy();
        child.stdout.destroy();
        child.stderr.destroy();
        child.unref();
        settle();
      }, killGraceMs);
    };
    const timeoutTimer = setTimeout(() => {
      end ??= { kind: 'timedOut' };
      killGroup();
    }, timeoutMs);
    signal?.addEventListener('abort', killGroup);
    child.once('error', (error) => {
      if (child.pid !== undefined) return;
      end = { kind: 'notStarted', message: errorText(error) };
      settle();
    });
    child.once('exit', (code, signalName) => {
      end ??= { kind: 'exited', code: code ?? signalCode(signalName) };
      killGroup();
    });
    child.once('close', settle);
  });
}

function sendSigkill(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // ESRCH: the group has no process left, as intended.
  }
}

function signalCode(name: NodeJS.Signals | null): number {
  return signalCodeBase + (name === null ? 0 : constants.signals[name]);
}

/** Keeps the first `bytesMax` bytes of a stream; the returned function decodes them. */
function collect(stream: Readable, bytesMax: number): () => string {
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let seenBytes = 0;
  stream.on('error', () => {});
  stream.on('data', (chunk: Buffer) => {
    seenBytes += chunk.length;
    const room = bytesMax - keptBytes;
    if (room <= 0) return;
    const part = chunk.subarray(0, room);
    kept.push(part);
    keptBytes += part.length;
  });
  return () => {
    const text = Buffer.concat(kept).toString('utf8');
    if (seenBytes <= bytesMax) return text;
    return `${text}\n[output cut: ${keptBytes} of ${seenBytes} bytes kept]`;
  };
}
