/**
 * The conformance suite: the requirements of a StateStore. One list of cases for every driver and
 * for the broken stores that prove that the cases can fail.
 */
import { describe, test } from 'vitest';
import { agingCases } from './aging.ts';
import { modellingCases } from './modelling.ts';
import { pagingCases } from './paging.ts';
import { readingCases } from './reading.ts';
import {
  type CaseNeeds,
  type ConformanceCase,
  type StoreUnderTest,
  type SuiteLimits,
  USUAL_LIMITS,
} from './subject.ts';
import { lastingCases, watchingCases } from './watching.ts';
import { writingCases } from './writing.ts';

export const conformanceCases: readonly ConformanceCase[] = [
  ...writingCases,
  ...readingCases,
  ...pagingCases,
  ...watchingCases,
  ...modellingCases,
  ...lastingCases,
  ...agingCases,
];

/** One case may take this long; a cluster that is killed and elects again is the slowest. */
const CASE_TIMEOUT_MS = 600_000;

/** Makes a fresh store for a case. */
type MakeSubject = (needs: CaseNeeds) => Promise<StoreUnderTest>;

/** Runs one case on a fresh store. Throws the case's failed assertion. */
export async function runCase(
  each: ConformanceCase,
  makeSubject: MakeSubject,
  limits: SuiteLimits = USUAL_LIMITS,
): Promise<void> {
  const subject = await makeSubject(each);
  try {
    await each.run(subject, limits);
  } finally {
    await subject.dispose();
  }
}

/**
 * Declares the whole suite as tests of the store `name`. `missing` says why it cannot run here;
 * the tests then skip with that reason.
 */
export function storeConformance(
  name: string,
  makeSubject: MakeSubject,
  limits: SuiteLimits = USUAL_LIMITS,
  missing: () => string | undefined = () => undefined,
): void {
  describe(name, () => {
    for (const each of conformanceCases) {
      test(each.name, { timeout: CASE_TIMEOUT_MS }, async (context) => {
        const reason = missing();
        if (reason !== undefined) context.skip(reason);
        await runCase(each, makeSubject, limits);
      });
    }
  });
}
