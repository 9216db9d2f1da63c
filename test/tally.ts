/**
 * Sums what one tier of `.ci/run` did: `node test/tally.ts <exit code> <log> <vitest JSON>`
 * prints `passed failed skipped`.
 *
 * S1 A tier that ended badly counts at least one failure, whatever it printed.
 * S2 A tier that printed nothing to count is one check, passed or failed by its exit code.
 * S3 A file of tests that was not run, since the time was over, counts as one that is skipped.
 */
import { existsSync, readFileSync } from 'node:fs';
import { notRunOf } from './deadline-reporter.ts';

/** How many checks ended in which way. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** What vitest's JSON report counts; a file that failed before its first test counts as one. */
export function tallyOfJson(text: string): Tally {
  const report: {
    numPassedTests: number;
    numFailedTests: number;
    numPendingTests: number;
    numTodoTests: number;
    testResults: { status: string; assertionResults: { status: string }[] }[];
  } = JSON.parse(text);
  const brokenFiles = report.testResults.filter(
    (file) =>
      file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + brokenFiles.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** The last line `N passed, N failed, N skipped` of a log, if it ends with one. */
export function tallyOfLog(text: string): Tally | undefined {
  const last = text.trimEnd().split('\n').at(-1) ?? '';
  const found = /^(\d+) passed, (\d+) failed, (\d+) skipped$/.exec(last);
  if (found === null) return undefined;
  return { passed: Number(found[1]), failed: Number(found[2]), skipped: Number(found[3]) };
}

/** One tier's tally (S1, S2). */
export function tallyOfTier(exitCode: number, log: string, json: string | undefined): Tally {
  const counted = json === undefined ? tallyOfLog(log) : tallyOfJson(json);
  if (counted === undefined) {
    return exitCode === 0
      ? { passed: 1, failed: 0, skipped: 0 }
      : { passed: 0, failed: 1, skipped: 0 };
  }
  const all = { ...counted, skipped: counted.skipped + notRunOf(log) };
  if (exitCode !== 0 && all.failed === 0) return { ...all, failed: 1 };
  return all;
}

if (import.meta.main) {
  const [exitCode = '1', logPath = '', jsonPath = ''] = process.argv.slice(2);
  const read = (path: string): string | undefined =>
    existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  const tally = tallyOfTier(Number(exitCode), read(logPath) ?? '', read(jsonPath));
  console.log(`${tally.passed} ${tally.failed} ${tally.skipped}`);
}
