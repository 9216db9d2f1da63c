import { expect, test } from 'vitest';
import { tallyOfJson, tallyOfLog, tallyOfTier } from './tally.ts';

const report = (files: object[], counts: object = {}): string =>
  JSON.stringify({
    numPassedTests: 7,
    numFailedTests: 0,
    numPendingTests: 2,
    numTodoTests: 1,
    testResults: files,
    ...counts,
  });
const failed = { status: 'failed', assertionResults: [{ status: 'failed' }] };
const unreadable = { status: 'failed', assertionResults: [] };

test('the tests of a report are counted, and an unreadable file as one failure', () => {
  expect(tallyOfJson(report([]))).toEqual({ passed: 7, failed: 0, skipped: 3 });
  const both = report([failed, unreadable], { numFailedTests: 1 });
  expect(tallyOfJson(both).failed).toBe(2);
});

test('the tally reads the last line of a log only', () => {
  const line = '3 passed, 1 failed, 2 skipped';
  expect(tallyOfLog(`a\n${line}\n`)).toEqual({ passed: 3, failed: 1, skipped: 2 });
  expect(tallyOfLog(`${line}\nthen it crashed`)).toBeUndefined();
});

test('the tally never calls a tier well that ended badly', () => {
  expect(tallyOfTier(1, '3 passed, 0 failed, 0 skipped', undefined).failed).toBe(1);
  expect(tallyOfTier(1, '', report([])).failed).toBe(1);
  expect(tallyOfTier(124, 'no tally', undefined)).toEqual({ passed: 0, failed: 1, skipped: 0 });
});

test('the tally counts files that were not run, for the time was over, as skipped', () => {
  const log = 'Not run, for the time was over: 12 files\nJSON report written to x';
  expect(tallyOfTier(0, log, report([]))).toEqual({ passed: 7, failed: 0, skipped: 15 });
});

test('the tally counts a tier without a tally as one check', () => {
  expect(tallyOfTier(0, 'done', undefined)).toEqual({ passed: 1, failed: 0, skipped: 0 });
});

test('the tally prefers the report over the log', () => {
  expect(tallyOfTier(0, '1 passed, 0 failed, 0 skipped', report([])).passed).toBe(7);
});
