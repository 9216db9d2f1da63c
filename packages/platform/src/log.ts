/** The fields of a line beside its message; undefined ones are left out. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Structured log; secrets never reach it. One line per event. The level says who has to act:
 *
 * - `error`: a person has to act, or work is at a halt.
 * - `warn`: something failed, and the program deals with it or tries again.
 * - `info`: a state changed, or a result came in.
 * - `debug`: details for a developer of the program itself.
 *
 * A caught value goes in as `error`: the line then carries its kind, message, stack and causes.
 */
export interface Log {
  debug(fields: LogFields, message: string, error?: unknown): void;
  info(fields: LogFields, message: string, error?: unknown): void;
  warn(fields: LogFields, message: string, error?: unknown): void;
  error(fields: LogFields, message: string, error?: unknown): void;
  /** A log whose lines all carry `fields` (host, operation, session). */
  child(fields: LogFields): Log;
}
