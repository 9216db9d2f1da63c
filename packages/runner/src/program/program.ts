/**
 * A program that a step starts: its parameters, and how it ends. `linux/programs.ts` starts real
 * processes; simulations bring programs of their own.
 *
 * Invariants of every implementation:
 * P1 The program gets exactly the requested environment, no input, and a process group and session
 *    of its own.
 * P2 When `end` settles, the group is gone: no process that the program had started goes on. Where
 *    that cannot be achieved, `end` says so. A daemon that has left the group and dropped the
 *    variables that mark it is seen where the kernel has control groups, as in the ramdisk. A
 *    daemon that has moved itself into another control group as well is not seen.
 * P3 It does not outlive its runner: when that dies, by any cause, the group dies too.
 * P4 Reading its output never waits for a receiver of it.
 */
import type { OperationId } from '@rackwright/messages';

/** The program to start. */
export interface ProgramRequest {
  /** Names the attempt: marks all processes of it, so that none is left behind. */
  readonly operationId: OperationId;
  /** An absolute path, or a name that is looked for in PATH; both as seen below `root`. */
  readonly file: string;
  readonly args: readonly string[];
  /** All of it, but for the mark of the operation (`operationVariable`). */
  readonly environment: Readonly<Record<string, string>>;
  /** Its working folder; an absolute path as seen below `root`. */
  readonly folder: string;
  /** The folder that it takes for "/"; absent: the one of the runner. */
  readonly root?: string;
}

/** The variable that every process of an operation has in its environment. */
export const operationVariable = 'RACKWRIGHT_OPERATION';

/** The end of a program. */
export type ProgramExit =
  | { readonly kind: 'exited'; readonly code: number }
  /** "SIGKILL" */
  | { readonly kind: 'signalled'; readonly signal: string }
  | { readonly kind: 'notStarted'; readonly message: string }
  /** It has ended, but not all of its group, although it was killed: for example on a dead disk. */
  | { readonly kind: 'stuck'; readonly message: string };

/** A program at work. */
export interface RunningProgram {
  /** Settles when the program and its group have ended; never rejects. */
  readonly end: Promise<ProgramExit>;
  /** SIGTERM to the group and, after a bounded time, SIGKILL. Any number of times. */
  stop(): void;
}

/** Starts programs. */
export interface Programs {
  /** `onOutput` gets both outputs, merged in the order of their arrival. */
  start(request: ProgramRequest, onOutput: (piece: Uint8Array) => void): Promise<RunningProgram>;
}
