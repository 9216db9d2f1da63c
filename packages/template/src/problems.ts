/**
 * Collects problems, in the order of the source.
 *
 * Invariants:
 * 1. Every position points into the source: line and column from 1, at most one behind its end.
 * 2. At most `problemsMax` are kept. Then the last one says that there may be more, and checks that
 *    cost much stop.
 */
import { nearestName } from '@rackwright/platform';
import { problemsMax } from './limits.ts';

const shownCharsMax = 60;

interface FoundProblem {
  readonly at: number;
  readonly path: string;
  readonly message: string;
}

export class Problems {
  readonly #source: string;
  readonly #found: FoundProblem[] = [];
  #dropped = 0;

  constructor(source: string) {
    this.#source = source;
  }

  get count(): number {
    return this.#found.length + this.#dropped;
  }

  /** No more of them would be kept. */
  get isFull(): boolean {
    return this.#found.length >= problemsMax;
  }

  /** `at`: offset in the source. */
  add(at: number, path: string, message: string): void {
    if (this.#found.some((each) => each.at === at && each.message === message)) return;
    if (this.#found.length < problemsMax) this.#found.push({ at, path, message });
    else this.#dropped += 1;
  }

  /** All of them, in the order of the source. */
  list(): readonly Problem[] {
    const starts = lineStarts(this.#source);
    const problems = [...this.#found]
      .sort((one, other) => one.at - other.at)
      .map(({ at, path, message }) => ({
        ...positionOf(starts, this.#bounded(at)),
        path,
        message,
      }));
    const last = problems.at(-1);
    if (!this.isFull || last === undefined) return problems;
    const message = `there may be more problems; only ${problemsMax} are told at once`;
    return [...problems, { ...last, path: '', message }];
  }

  #bounded(at: number): number {
    return Math.max(0, Math.min(at, this.#source.length));
  }
}

function lineStarts(source: string): readonly number[] {
  const starts = [0];
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) {
    starts.push(at + 1);
  }
  return starts;
}

function positionOf(starts: readonly number[], at: number): { line: number; column: number } {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: at - (starts[low] ?? 0) + 1 };
}

/** A text as it is shown in a message: quoted and bounded. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text);
}

/** Names are compared within these lengths: shorter ones are all alike, longer ones cost much. */
const comparedCharsMin = 3;
const comparedCharsMax = 80;

/** `; did you mean "name"?`, or nothing when none is near. */
export function didYouMeanText(name: string, known: readonly string[]): string {
  if (name.length < comparedCharsMin || name.length > comparedCharsMax) return '';
  const begun = known.filter((each) => each.startsWith(name));
  const meant = begun.length === 1 ? begun[0] : nearestName(name, known);
  return meant === undefined ? '' : `; did you mean ${quoted(meant)}?`;
}

/** The same, or else the names that there are. */
export function suggestionText(name: string, known: readonly string[]): string {
  return didYouMeanText(name, known) || (known.length === 0 ? '' : `; there ${are(known)}`);
}

const namesShownMax = 14;

function are(known: readonly string[]): string {
  const shown = known.slice(0, namesShownMax).join(', ');
  const more = known.length > namesShownMax ? ', …' : '';
  return `${known.length === 1 ? 'is' : 'are'} ${shown}${more}`;
}

/** One thing that is wrong, and where. */
export interface Problem {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  /** For example "steps[2].command.image"; empty for the document as a whole. */
  readonly path: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}
