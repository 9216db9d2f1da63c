/**
 * How long a program waits before it begins when its last starts have failed: systemd starts it
 * again at once, and before version 254 systemd has no pause that grows.
 *
 * 1. The count is in the folder that systemd gives the unit and keeps while it restarts it
 *    (`RuntimeDirectory=`, `RuntimeDirectoryPreserve=restart`): a stop of the unit resets it.
 *    Without such a folder nothing is counted, and nothing waits.
 * 2. A start counts from its beginning until it is ready, so one that is killed counts as well.
 * 3. The first start after a failure does not wait: most causes are over by then.
 * 4. A count that cannot be kept is none: it must not keep a program from starting.
 * 5. The wait is before anything is open. A signal meanwhile comes from a person or from an
 *    upgrade: it ends the wait and the count, so that the next start does not wait.
 */
import { once } from 'node:events';
import { appendFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const firstPauseMs = 2_000;
/** Below the time that units have for a start. */
export const pauseMsMax = 60_000;
const fileName = 'failed-starts';

/** The starts in a row that have not succeeded, of the program that has this environment. */
export interface FailedStarts {
  /** Counts this start, and waits accordingly. False: the program must end instead. */
  begin(): Promise<boolean>;
  /** This start has succeeded, or is not to be counted. */
  forget(): Promise<void>;
}

/** `wait` is for tests; it answers whether the time has passed without a signal. */
export function nodeFailedStarts(
  environment: Readonly<Record<string, string | undefined>>,
  wait: (ms: number) => Promise<boolean> = waitUnlessSignalled,
): FailedStarts {
  // Several folders are separated by colons; ours are single ones.
  const [folder = ''] = (environment['RUNTIME_DIRECTORY'] ?? '').split(':');
  const file = join(folder, fileName);
  const forget = async (): Promise<void> => {
    // (4) A count that stays costs the next start a wait.
    if (folder !== '') await rm(file, { force: true }).catch(() => undefined);
  };
  return {
    begin: async () => {
      if (folder === '') return true;
      // (4) No file: no start has failed.
      const before = await stat(file).then(
        ({ size }) => size,
        () => 0,
      );
      // (4) A start that is not counted begins all the same.
      await appendFile(file, '.').catch(() => undefined);
      const ms = pauseAfter(before);
      if (ms === 0 || (await wait(ms))) return true;
      await forget();
      return false;
    },
    forget,
  };
}

/** True when the time has passed; false when a signal to end came before. */
export async function waitUnlessSignalled(ms: number): Promise<boolean> {
  const ending = new AbortController();
  const { signal } = ending;
  try {
    return await Promise.race([
      sleep(ms, true, { signal }),
      ...['SIGTERM', 'SIGINT'].map((name) => once(process, name, { signal }).then(() => false)),
    ]);
  } finally {
    ending.abort();
  }
}

/** After so many failures in a row. */
export function pauseAfter(failures: number): number {
  return failures < 2 ? 0 : Math.min(firstPauseMs * 2 ** Math.min(failures - 2, 16), pauseMsMax);
}
