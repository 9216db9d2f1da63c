/**
 * Measures a large subject by a random sample: of every N mutants about one is tried. A hash of the
 * place and the change decides, never the outcome, so the sample is the same before and after a
 * test is written.
 *
 * Stryker loads this file as a plugin of the kind that refuses mutants before they are run. What is
 * refused counts for nothing.
 */
import { createHash } from 'node:crypto';

/** The name by which Stryker's configuration asks for it. */
export const sampleChecker = 'sample';

/** One mutant as Stryker hands it over; lines and columns from 0. */
export interface CandidateMutant {
  readonly id: string;
  readonly fileName: string;
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
}

/** Whether the mutant is one of those that are tried. `every`: 1 or more. */
export function isSampled(mutant: CandidateMutant, every: number): boolean {
  const { fileName, mutatorName, replacement = '', location } = mutant;
  const file = fileName.split('/').slice(-2).join('/');
  const { line, column } = location.start;
  const text = [file, mutatorName, replacement, line, column].join('\n');
  return createHash('sha256').update(text).digest().readUInt32BE(0) % every === 0;
}

interface SampleOptions {
  readonly sampleEvery?: number;
}

type Answer =
  | { readonly status: 'passed' }
  | { readonly status: 'compileError'; readonly reason: string };

/** Refuses what is not in the sample. */
export class SampleChecker {
  static readonly inject = ['options'] as const;
  readonly #every: number;

  constructor({ sampleEvery = 1 }: SampleOptions) {
    this.#every = sampleEvery;
  }

  async init(): Promise<void> {}

  async check(mutants: readonly CandidateMutant[]): Promise<Record<string, Answer>> {
    return Object.fromEntries(mutants.map((mutant) => [mutant.id, this.#answer(mutant)]));
  }

  /** All at once: an answer costs a hash. */
  async group(mutants: readonly CandidateMutant[]): Promise<string[][]> {
    return [mutants.map(({ id }) => id)];
  }

  #answer(mutant: CandidateMutant): Answer {
    return isSampled(mutant, this.#every)
      ? { status: 'passed' }
      : { status: 'compileError', reason: 'not in the sample' };
  }
}

export const strykerPlugins = [
  { kind: 'Checker', name: sampleChecker, injectableClass: SampleChecker },
];

export const strykerValidationSchema = {
  properties: { sampleEvery: { type: 'integer', minimum: 1 } },
};
