/** A log that drops its lines: tests of log lines keep them instead. */
import type { Log } from '../log.ts';

const quiet = (): void => undefined;

/** A log that nobody reads. */
export const quietLog: Log = {
  ...{ debug: quiet, info: quiet, warn: quiet, error: quiet },
  child: () => quietLog,
};
