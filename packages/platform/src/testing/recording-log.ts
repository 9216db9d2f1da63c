/** A log whose lines a test reads. */
import type { Log, LogFields } from '../log.ts';
import type { LogLevel } from '../node/log.ts';

export interface LogLine {
  readonly level: LogLevel;
  /** With those of the child log that wrote it. */
  readonly fields: LogFields;
  readonly message: string;
  /** The caught value that was given; undefined: none was. */
  readonly error: unknown;
}

/** Calls `keep` with each line, of every level and of its child logs too. */
export function recordingLog(keep: (line: LogLine) => void): Log {
  return childLog({}, keep);
}

function childLog(own: LogFields, keep: (line: LogLine) => void): Log {
  const at =
    (level: LogLevel): Log[LogLevel] =>
    (fields, message, error) =>
      keep({ level, fields: { ...own, ...fields }, message, error });
  return {
    ...{ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    child: (fields) => childLog({ ...own, ...fields }, keep),
  };
}
