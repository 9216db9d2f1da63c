import { expect, test } from 'vitest';
import { describeTier, failuresOfJson, failuresOfLog } from './failures.ts';

const passed = { status: 'passed', fullName: 'works', failureMessages: [] };
const failed = {
  status: 'failed',
  fullName: 'group breaks',
  failureMessages: ['\u001b[31mAssertionError: expected 1\u001b[39m\n    at /x/a.test.ts:3:1\n'],
};
const report = (...files: object[]): string => JSON.stringify({ testResults: files });

test('each failed test of a report is named with what it said', () => {
  const file = { name: '/x/a.test.ts', status: 'failed', message: '' };
  const json = report({ ...file, assertionResults: [passed, failed] });
  expect(failuresOfJson(json, '/x/')).toEqual([
    {
      name: 'a.test.ts > group breaks',
      lines: ['AssertionError: expected 1', '    at /x/a.test.ts:3:1'],
    },
  ]);
});

test('a file that could not be read is named', () => {
  const message = 'SyntaxError: Unexpected token';
  const json = report({ name: '/x/b.test.ts', status: 'failed', message, assertionResults: [] });
  expect(failuresOfJson(json, '/x/')).toEqual([{ name: 'b.test.ts', lines: [message] }]);
});

test('the failed checks of a laboratory are named with the lines below', () => {
  const log = [
    '--- check: bios',
    '  ok   the disk is clean',
    '  FAIL h1 is available: it waits',
    'its log ends:',
    '  ok   nothing is left behind',
    '1 passed, 1 failed, 0 skipped',
  ].join('\n');
  expect(failuresOfLog(log)).toEqual([
    { name: 'h1 is available: it waits', lines: ['its log ends:'] },
  ]);
});

test('the failed command of a check is named', () => {
  expect(failuresOfLog('a.ts(1,2): error\nFAILED  types  3.1 s\nok      lint  1.0 s')).toEqual([
    { name: 'types  3.1 s', lines: [] },
  ]);
});

test('the summary shows the end of a tier that ended badly and named nothing', () => {
  const log = Array.from({ length: 100 }, (_, index) => `line ${index}`).join('\n');
  const text = describeTier('peers', 124, log, []);
  expect(text[0]).toBe('--- peers ended with 124');
  expect(text.at(-1)).toBe('    line 99');
  expect(text.length).toBeLessThan(40);
});

test('the summary is bounded, however much failed', () => {
  const lines = Array.from({ length: 100 }, () => 'x'.repeat(1_000));
  const failures = Array.from({ length: 100 }, (_, index) => ({ name: `test ${index}`, lines }));
  const text = describeTier('test', 1, '', failures);
  expect(text.at(-1)).toBe('and 80 more');
  expect(text.length).toBeLessThan(200);
  expect(Math.max(...text.map((line) => line.length))).toBeLessThanOrEqual(240);
});
