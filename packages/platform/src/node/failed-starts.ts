/**
 * How long a program that cannot start waits before it ends: systemd starts it again at once, and
 * before version 254 it knows no pause that grows.
 *
 * 1. Counted in the folder that systemd gives the unit and keeps while it starts it again
 *    (`RuntimeDirectory=`, `RuntimeDirectoryPreserve=restart`): whoever stops the unit begins anew.
 *    Without such a folder nobody is counting, and nobody waits.
 * 2. The first failure waits for nothing: most are over by the next start.
 * 3. A count that cannot be kept is none: it must not hide why the start has failed.
 * 4. The whole program stands still meanwhile: ports that a failed start has opened answer nobody.
 *    A signal ends it, as it has not come so far as to listen to one.
 */
import { appendFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

const firstPauseMs = 2_000;
/** Below the time that units have for a start. */
export const pauseMaxMs = 60_000;
const fileName = 'failed-starts';

/** The failed starts in a row of the program that has this environment. */
export interface FailedStarts {
  /** Counts one more, and waits accordingly. */
  pause(): Promise<void>;
  /** A start has succeeded. */
  forget(): Promise<void>;
}

/** `wait` is for tests. */
export function nodeFailedStarts(
  environment: Readonly<Record<string, string | undefined>>,
  wait: (ms: number) => void = standStill,
): FailedStarts {
  // Several folders stand with colons between them; ours are single ones.
  const [folder = ''] = (environment['RUNTIME_DIRECTORY'] ?? '').split(':');
  const file = join(folder, fileName);
  return {
    pause: async () => {
      if (folder === '') return;
      const before = await stat(file).then(
        ({ size }) => size,
        () => 0,
      );
      await appendFile(file, '.').catch(() => undefined);
      const ms = pauseAfter(before);
      if (ms > 0) wait(ms);
    },
    forget: async () => {
      if (folder !== '') await rm(file, { force: true }).catch(() => undefined);
    },
  };
}

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** After so many failures before this one. */
export function pauseAfter(failures: number): number {
  return failures === 0 ? 0 : Math.min(firstPauseMs * 2 ** Math.min(failures - 1, 16), pauseMaxMs);
}
