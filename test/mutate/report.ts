/** What a run of the mutation tester found, in the report format that its maintainers publish. */

export interface Mutant {
  readonly id: string;
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
}

export interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: readonly Mutant[] }>>;
}

export interface Score {
  readonly noticed: number;
  readonly survived: number;
  /** Share of the mutants that were noticed, per cent; 100 where there are none. */
  readonly percent: number;
}

/** A mutant without end is noticed: its test runs into its time limit. */
const noticed: ReadonlySet<string> = new Set(['Killed', 'Timeout', 'RuntimeError']);
const survived: ReadonlySet<string> = new Set(['Survived', 'NoCoverage']);

/** Mutants that were left out, or do not compile, count for nothing. */
export function scoreOf({ files }: Report): Score {
  const mutants = Object.values(files).flatMap((file) => file.mutants);
  const count = (of: ReadonlySet<string>) => mutants.filter(({ status }) => of.has(status)).length;
  const [caught, left] = [count(noticed), count(survived)];
  const all = caught + left;
  return { noticed: caught, survived: left, percent: all === 0 ? 100 : (100 * caught) / all };
}

/** `FILE:LINE:COLUMN MUTATOR → REPLACEMENT` of each mutant that nobody noticed, in file order. */
export function survivorLines({ files }: Report): string[] {
  return Object.entries(files).flatMap(([path, { mutants }]) =>
    mutants
      .filter(({ status }) => survived.has(status))
      .toSorted((a, b) => a.location.start.line - b.location.start.line)
      .map(({ mutatorName, replacement = '', status, location: { start } }) => {
        const text = replacement.replaceAll(/\s+/g, ' ').slice(0, 60);
        const place = `${path}:${start.line}:${start.column}`;
        const untested = status === 'NoCoverage' ? ' (no test runs it)' : '';
        return `${place} ${mutatorName} → ${text}${untested}`;
      }),
  );
}
