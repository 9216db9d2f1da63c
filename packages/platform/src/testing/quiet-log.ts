/** For tests of what is not said: whoever tests what is said keeps the lines. */
import type { Log } from '../log.ts';

const quiet = (): void => undefined;

/** A log that nobody reads. */
export const quietLog: Log = {
  ...{ debug: quiet, info: quiet, warn: quiet, error: quiet },
  child: () => quietLog,
};
