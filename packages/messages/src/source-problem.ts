/**
 * A problem at a position of a template's source, as the description of a field violation: "line 3,
 * column 5: …". google.rpc.BadRequest has no field for a position, so both sides of the call write
 * and read it here.
 */

export interface SourceProblem {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  readonly message: string;
}

export function sourceProblemText({ line, column, message }: SourceProblem): string {
  return `line ${line}, column ${column}: ${message}`;
}

/** What `sourceProblemText` wrote; undefined for any other text. */
export function parseSourceProblem(text: string): SourceProblem | undefined {
  const [, line, column, message] = /^line (\d{1,9}), column (\d{1,9}): (.*)$/s.exec(text) ?? [];
  if (line === undefined || column === undefined || message === undefined) return undefined;
  return { line: Number(line), column: Number(column), message };
}
