/**
 * One JSON object per line on standard error, for the journal.
 *
 * L1 A line is written before the call returns: a crash loses none.
 * L2 A line is bounded: long texts are cut and marked.
 */
import { writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import { errorText } from '../error-text.ts';
import type { Log, LogFields } from '../log.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Longest text of a field or message, in UTF-16 units; a longer one is cut and marked. */
export const logTextUnitsMax = 4_096;

const standardErrorFd = 2;
/** How long a pipe without room is left alone. */
const busyMs = 10;

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

/** Writes whole lines (L1). Once nobody reads them any more, they are dropped: work goes on. */
function lineWriter(fd: number): (line: string) => void {
  let isRead = true;
  return (line) => {
    let rest: Uint8Array = Buffer.from(line);
    while (isRead && rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
      } catch (cause) {
        const code = cause instanceof Error ? codeOf(cause) : undefined;
        if (code === 'EPIPE') isRead = false;
        else if (code === 'EAGAIN') waitHere(busyMs);
        else throw cause;
      }
    }
  };
}

/** For a descriptor that does not block, which another program may have made so. */
function waitHere(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
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
  const code = codeOf(caught);
  return {
    kind: name,
    message: cut(message),
    ...(code === undefined ? {} : { code }),
    ...(stack === undefined ? {} : { stack: cut(stack) }),
    ...(cause === undefined || causesLeft === 0 ? {} : { cause: described(cause, causesLeft - 1) }),
  };
}

/** Node's code of an error, where it has one. */
function codeOf(error: Error): string | undefined {
  const code: unknown = Reflect.get(error, 'code');
  return typeof code === 'string' ? code : undefined;
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
