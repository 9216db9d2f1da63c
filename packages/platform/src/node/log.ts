/**
 * One JSON object per line on standard error, for the journal.
 *
 * L1 A line is written before the call returns: a crash loses none.
 * L2 A line is bounded: long texts are cut and marked.
 */
import { type Logger, pino } from 'pino';
import type { Log, LogFields } from '../log.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Longest text of a field or message, in UTF-16 units; what is longer is cut and marked. */
export const logTextUnitsMax = 4_096;

const standardErrorFd = 2;

/** Lines below `level` are dropped. `fd` is where lines go; standard error unless a test says. */
export function nodeLog(level: LogLevel, fd: number = standardErrorFd): Log {
  const destination = pino.destination({ fd, sync: true });
  return wrap(
    pino(
      {
        level,
        base: null,
        messageKey: 'message',
        timestamp: () => `,"time":"${new Date().toISOString()}"`,
        formatters: { level: (label) => ({ level: label }) },
      },
      destination,
    ),
  );
}

function wrap(logger: Logger): Log {
  return {
    debug: (fields, message) => logger.debug(bounded(fields), cut(message)),
    info: (fields, message) => logger.info(bounded(fields), cut(message)),
    warn: (fields, message) => logger.warn(bounded(fields), cut(message)),
    error: (fields, message) => logger.error(bounded(fields), cut(message)),
    child: (fields) => wrap(logger.child(bounded(fields))),
  };
}

function bounded(fields: LogFields): LogFields {
  const entries = Object.entries(fields);
  if (!entries.some(([, value]) => typeof value === 'string' && value.length > logTextUnitsMax)) {
    return fields;
  }
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'string' ? cut(value) : value]),
  );
}

function cut(text: string): string {
  if (text.length <= logTextUnitsMax) return text;
  return `${text.slice(0, logTextUnitsMax)}… [cut, ${text.length} in all]`;
}
