import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { overdueReporter, silenceMsMax, type TestFile } from './overdue-reporter.ts';

const root = join(import.meta.dirname, '..');

test('a file may be silent for as long as its slowest test or hook may take', () => {
  const patience = { importMs: 300, hookMs: 600, graceMs: 60 };
  expect(silenceMsMax([], patience)).toBe(360);
  expect(silenceMsMax([180], patience)).toBe(660);
  expect(silenceMsMax([180, 900], patience)).toBe(960);
});

test('a file that has ended may be silent, whatever is told of its tests afterwards', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const ended: string[] = [];
  const patience = { importMs: 1_000, hookMs: 1_000, graceMs: 1_000 };
  const reporter = overdueReporter(patience, (text) => ended.push(text));
  reporter.onTestRunStart();
  reporter.onTestModuleQueued(moduleOf([]));
  // As Vitest does it: another object for the same file.
  const collected = moduleOf([100]);
  reporter.onTestModuleCollected(collected);
  reporter.onTestModuleEnd(collected);
  reporter.onTestCaseResult({ module: collected });
  vi.advanceTimersByTime(10_000);
  expect(ended).toEqual([]);
  reporter.onTestModuleQueued(moduleOf([]));
  vi.advanceTimersByTime(10_000);
  expect(ended[0]).toMatch(/^a\.test\.ts says nothing for \d+ s: its import does not end/);
});

function moduleOf(timeouts: readonly number[]): TestFile {
  const tests = timeouts.map((timeout) => ({ fullName: 'waits', options: { timeout } }));
  const children = { allTests: (state?: 'pending') => (state === undefined ? tests : []) };
  return { moduleId: '/a.test.ts', relativeModuleId: 'a.test.ts', children };
}

test('a run ends, and names the test, when a loop outlives its timeout', async () => {
  const { RACKWRIGHT_TEST_FOLDER: _ours, VITEST: _vitest, ...env } = process.env;
  const config = join(root, 'test/overdue/vitest.config.ts');
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config];
  const [code, said] = await new Promise<[number, string]>((resolve) => {
    const limits = { cwd: root, env, timeout: 120_000, killSignal: 'SIGKILL' } as const;
    const child = execFile(process.execPath, args, limits, (_error, _out, err) =>
      resolve([child.exitCode ?? -1, err]),
    );
  });
  expect(said).toMatch(
    /^busy\.fixture\.ts says nothing for \d+ s: "a test is busy for ever" does not end/,
  );
  expect(code).toBe(1);
});
