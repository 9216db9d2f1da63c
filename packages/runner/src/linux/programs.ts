/**
 * Programs of steps as processes of this machine (see `program/program.ts` for the invariants). A
 * program's processes are recognized by their process group, by a variable in their environment
 * and, where there is one, by a control group.
 *
 * A shell precedes each program. It waits until the mark of its group is written down, so that a
 * successor of this runner can end every running process (P2). It leaves a watcher in the group
 * that kills it once the runner's end of a pipe is closed, that is when the runner has died (P3).
 * And it gives the program one pipe for both outputs, which keeps their order.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import type { BootId, OperationId } from '@rackwright/messages';
import type { Clock, Disk, Log } from '@rackwright/platform';
import {
  operationVariable,
  type ProgramExit,
  type ProgramRequest,
  type Programs,
  type RunningProgram,
} from '../program/program.ts';
import { enterGroup, killGroup, membersOfGroup, removeGroup } from './control-group.ts';
import { endAll, hasVariable, processesWhere, readProcess } from './processes.ts';
import { isMissing } from './sys-files.ts';

export interface ProgramParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: BootId;
  /** The file with the mark of the program at work. */
  readonly markPath: string;
  readonly procRoot: string;
  /** The control group of the program at work, this runner's alone; absent: there is none. */
  readonly controlGroup?: string;
  /** Sends a signal to a process (positive) or a group (negative); an absent one is no error. */
  readonly kill: (target: number, signal: NodeJS.Signals) => void;
}

/** Between SIGTERM and SIGKILL, milliseconds. */
export const stopGraceMs = 10_000;
/** How long a killed group may take to end, milliseconds. */
const groupEndTimeoutMs = 20_000;
/** The same for programs that an earlier runner has left. */
const leftoverEndTimeoutMs = 120_000;
/** How long the output of a group that has ended may still be read, milliseconds. */
const outputGraceMs = 2_000;
const ownerOnly = 0o600;

const startBarrier = `read -r go <&3 || exit 125
( ( trap '' TERM INT HUP; read -r over <&3; kill -KILL 0 ) >/dev/null 2>&1 & )
exec "$@" 3<&- 2>&1`;

interface ProgramMark {
  readonly bootId: BootId;
  readonly operationId: OperationId;
  /** The pid of the process that leads the group. */
  readonly pid: number;
  readonly startTicks: string;
}

/** Starts programs; ends first the programs that an earlier runner has left. */
export async function linuxPrograms(parts: ProgramParts): Promise<Programs> {
  await endLeftProgram(parts);
  return { start: (request, onOutput) => start(parts, request, onOutput) };
}

async function start(
  parts: ProgramParts,
  request: ProgramRequest,
  onOutput: (piece: Uint8Array) => void,
): Promise<RunningProgram> {
  const { operationId, environment, folder, root } = request;
  if (root === undefined && !(await isFolder(folder))) {
    return notStarted(`there is no folder ${folder}`);
  }
  const within = root === undefined ? [] : ['unshare', `--root=${root}`, `--wd=${folder}`, '--'];
  const child = spawn(
    '/bin/sh',
    ['-c', startBarrier, 'sh', ...within, request.file, ...request.args],
    {
      cwd: root === undefined ? folder : '/',
      env: { ...environment, [operationVariable]: operationId },
      // A session and a group of its own.
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
    },
  );
  const begun = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('spawn', () => resolve(undefined));
  });
  const { pid } = child;
  if (begun !== undefined || pid === undefined) return notStarted(begun ?? 'no process');
  child.on('error', (error) => parts.log.warn({}, 'of a program', error));
  const output = child.stdout as Readable;
  output.on('error', () => {});
  output.on('data', (piece: Buffer) => onOutput(new Uint8Array(piece)));
  // Both before anything of the program runs.
  const end = whenEnded(parts, child, pid, operationId);
  await leaveMark(parts, pid, operationId);
  await enterControlGroup(parts, pid);
  const go = child.stdio[3] as Writable;
  go.on('error', () => {});
  go.write('go\n');
  return { end, stop: () => stop(parts, child, pid) };
}

function notStarted(message: string): RunningProgram {
  return { end: Promise.resolve({ kind: 'notStarted', message }), stop: () => {} };
}

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    (error: unknown) => {
      if (isMissing(error)) return false;
      throw error;
    },
  );
}

async function leaveMark(
  parts: ProgramParts,
  pid: number,
  operationId: OperationId,
): Promise<void> {
  const startTicks = (await readProcess(parts.procRoot, pid))?.startTicks ?? '';
  const mark: ProgramMark = { bootId: parts.bootId, operationId, pid, startTicks };
  const bytes = new TextEncoder().encode(JSON.stringify(mark));
  await parts.disk.writeAtomic(parts.markPath, bytes, ownerOnly);
}

async function enterControlGroup({ controlGroup, log }: ProgramParts, pid: number): Promise<void> {
  if (controlGroup === undefined) return;
  try {
    await enterGroup(controlGroup, pid);
  } catch (error) {
    log.warn({}, 'a program without a control group: a daemon may outlive it', error);
  }
}

function stop(parts: ProgramParts, child: ChildProcess, pid: number): void {
  // The number may be another's once the child has ended.
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  if (hasEnded()) return;
  parts.kill(-pid, 'SIGTERM');
  parts.clock.after(stopGraceMs, () => {
    if (!hasEnded()) parts.kill(-pid, 'SIGKILL');
  });
}

async function whenEnded(
  parts: ProgramParts,
  child: ChildProcess,
  pid: number,
  operationId: OperationId,
): Promise<ProgramExit> {
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });
  const exit = await new Promise<ProgramExit>((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(
        signal === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'signalled', signal },
      ),
    );
  });
  const left = await endGroup(parts, { group: pid, operationId }, groupEndTimeoutMs);
  // Its output is in the pipe; nobody writes there any more.
  await Promise.race([
    closed,
    new Promise<void>((resolve) => {
      parts.clock.after(outputGraceMs, resolve);
    }),
  ]);
  child.stdout?.destroy();
  child.stdio[3]?.destroy();
  if (left.length === 0) return exit;
  const message = `its processes ${left.join(', ')} do not end`;
  return { kind: 'stuck', message };
}

/** The marks by which the processes of one program are recognized; beside its control group. */
interface Marks {
  readonly group?: number | undefined;
  readonly operationId?: OperationId;
}

/**
 * Ends all processes that carry one of the marks, in any group or session. Returns those that do
 * not end.
 */
async function endGroup(
  { clock, log, procRoot, kill, controlGroup = '' }: ProgramParts,
  { group, operationId }: Marks,
  timeoutMs: number,
): Promise<readonly number[]> {
  const assignment = `${operationVariable}=${operationId}`;
  let inGroup = false;
  const find = async (): Promise<number[]> => {
    inGroup = false;
    const members = await membersOfGroup(controlGroup);
    return await processesWhere(procRoot, async (pid, facts) => {
      const isInGroup = facts.group === group;
      inGroup ||= isInGroup;
      if (isInGroup || members.has(pid)) return true;
      return operationId !== undefined && (await hasVariable(procRoot, pid, assignment));
    });
  };
  const left = await endAll(clock, timeoutMs, find, (found) => {
    log.info({ operation: operationId, processes: found.join(' ') }, 'ending what it has left');
    // All at once, so that no member starts another meanwhile.
    killGroup(controlGroup);
    if (inGroup && group !== undefined) kill(-group, 'SIGKILL');
    for (const pid of found) kill(pid, 'SIGKILL');
  });
  await removeGroup(controlGroup);
  return left;
}

async function endLeftProgram(parts: ProgramParts): Promise<void> {
  const { disk, bootId, markPath, procRoot } = parts;
  const stored = await disk.read(markPath);
  const mark =
    stored === undefined
      ? undefined
      : (JSON.parse(new TextDecoder().decode(stored)) as ProgramMark);
  let marks: Marks = {};
  if (mark?.bootId === bootId) {
    const leader = await readProcess(procRoot, mark.pid);
    // The kernel does not reuse a group's number while the group has members.
    const isTheirs = leader === undefined || leader.startTicks === mark.startTicks;
    marks = { operationId: mark.operationId, group: isTheirs ? mark.pid : undefined };
  }
  const left = await endGroup(parts, marks, leftoverEndTimeoutMs);
  if (left.length === 0) return;
  throw new Error(`processes ${left.join(', ')} of the runner before do not end`);
}
