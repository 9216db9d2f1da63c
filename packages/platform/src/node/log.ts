/**
 * One JSON object per line on standard error, for the journal.
 *
 * L1 A line is written before the call returns: a crash loses none. Where it cannot be written, the
 *    call waits a bounded time, drops the line and does not throw (`lineWriter`).
 * L2 A line is bounded: long texts are cut and marked.
 */
import { type Logger, pino } from 'pino';
import { errorCode, errorText } from '../error-text.ts';
import type { Log, LogFields } from '../log.ts';
import { lineWriter } from './line-writer.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Longest text of a field or message, in UTF-16 units; a longer one is cut and marked. */
export const logTextUnitsMax = 4_096;

const standardErrorFd = 2;

/** Lines below `level` are dropped. `fd` is where lines go; standard error unless a test says. */
export function nodeLog(level: LogLevel, fd: number = standardErrorFd): Log {
  const options = {
    level,
    base: null,
    messageKey: 'message',
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return wrap(pino(options, { write: lineWriter(fd) }));
}

function wrap(logger: Logger): Log {
  const write =
    (level: LogLevel) =>
    (fields: LogFields, message: string, ...thrown: readonly unknown[]): void => {
      if (!logger.isLevelEnabled(level)) return;
      const caught = thrown[0] === undefined ? {} : { error: described(thrown[0], causesMax) };
      logger[level]({ ...bounded(fields), ...caught }, cut(message));
    };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => wrap(logger.child(bounded(fields))),
  };
}

/** How far a chain of causes is followed: an error may be its own cause. */
const causesMax = 8;

/** A caught value, as an object of a line. */
interface ErrorFields {
  readonly kind: string;
  readonly message: string;
  /** Node's code: ECONNREFUSED and the like. */
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorFields;
}

function described(caught: unknown, causesLeft: number): ErrorFields {
  if (!(caught instanceof Error)) return { kind: typeof caught, message: cut(errorText(caught)) };
  const { name, message, stack, cause } = caught;
  const code = errorCode(caught);
  return {
    kind: name,
    message: cut(message),
    ...(code === undefined ? {} : { code }),
    ...(stack === undefined ? {} : { stack: cut(stack) }),
    ...(cause === undefined || causesLeft === 0 ? {} : { cause: described(cause, causesLeft - 1) }),
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
