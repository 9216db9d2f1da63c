/**
 * Ends this process, or another one, as `kill -9` from outside would, at a place chosen beforehand.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import type { CrashPoint } from '../crash-point.ts';

/** Which passing of which named place is deadly. */
export interface ArmedCrash {
  readonly name: string;
  /** 1 for the first time that the place is passed. */
  readonly occurrence: number;
  /** Kills the process whose pid is in this file instead of ourselves, and goes on. */
  readonly pidFile?: string;
}

/**
 * A crash point that does nothing but at the place that `armed` names. SIGKILL to oneself is
 * delivered before `kill` returns: no line after that place runs, no handler, no buffered write.
 * `disarm` runs just before it.
 */
export function makeCrashPoint(armed: ArmedCrash, disarm = () => {}): CrashPoint {
  if (!Number.isInteger(armed.occurrence) || armed.occurrence < 1) {
    throw new RangeError(`occurrence must be a whole number from 1 on, got ${armed.occurrence}`);
  }
  let passed = 0;
  return (name) => {
    if (name !== armed.name) return;
    passed += 1;
    if (passed !== armed.occurrence) return;
    disarm();
    process.kill(victimOf(armed), 'SIGKILL');
  };
}

/**
 * The same for a process that runs on. `file` holds an `ArmedCrash` as JSON: passings count from
 * the moment on in which it appears. It is removed at the deadly passing, before anything is
 * killed, so that the next life is not armed. Without a file nothing is.
 */
export function makeFileCrashPoint(file: string | undefined): CrashPoint {
  if (file === undefined) return () => {};
  let crashPoint: CrashPoint | undefined;
  return (name) => {
    if (!existsSync(file)) {
      crashPoint = undefined;
      return;
    }
    crashPoint ??= makeCrashPoint(readArmed(file), () => rmSync(file));
    crashPoint(name);
  };
}

function readArmed(file: string): ArmedCrash {
  return JSON.parse(readFileSync(file, 'utf8')) as ArmedCrash;
}

function victimOf({ pidFile }: ArmedCrash): number {
  if (pidFile === undefined) return process.pid;
  const pid = Number(readFileSync(pidFile, 'utf8'));
  if (!Number.isInteger(pid) || pid < 2) throw new RangeError(`${pidFile} holds no process id`);
  return pid;
}
