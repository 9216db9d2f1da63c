/** What a line says beside its message; fields that are undefined are left out. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Structured log. Info is for state changes and results only; secrets never reach it. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A log whose lines all carry `fields` (host, operation, session). */
  child(fields: LogFields): Log;
}
