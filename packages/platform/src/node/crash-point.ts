/**
 * Ends this process, or another one, as `kill -9` from outside would, at a place chosen beforehand.
 */
import { readFileSync } from 'node:fs';
import type { CrashPoint } from '../crash-point.ts';

/** Which passing of which named place is deadly. */
export interface ArmedCrash {
  readonly name: string;
  /** 1 for the first time that the place is passed. */
  readonly occurrence: number;
  /** Kills the process whose pid stands in this file instead of ourselves, and goes on. */
  readonly pidFile?: string;
}

/**
 * A crash point that does nothing unless `armed` names it. SIGKILL to oneself is delivered before
 * `kill` returns: no line after the armed place runs, no handler, no buffered write.
 */
export function makeCrashPoint(armed: ArmedCrash | undefined): CrashPoint {
  if (armed === undefined) return () => {};
  if (!Number.isInteger(armed.occurrence) || armed.occurrence < 1) {
    throw new RangeError(`occurrence must be a whole number from 1 on, got ${armed.occurrence}`);
  }
  let passed = 0;
  return (name) => {
    if (name !== armed.name) return;
    passed += 1;
    if (passed === armed.occurrence) process.kill(victimOf(armed), 'SIGKILL');
  };
}

function victimOf({ pidFile }: ArmedCrash): number {
  if (pidFile === undefined) return process.pid;
  const pid = Number(readFileSync(pidFile, 'utf8'));
  if (!Number.isInteger(pid) || pid < 2) throw new RangeError(`${pidFile} holds no process id`);
  return pid;
}
