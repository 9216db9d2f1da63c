/** Each test skips itself, with a reason, where the machine cannot carry it. */
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { attemptsReporter } from './test/attempts-reporter.ts';
import { deadlineReporter } from './test/deadline-reporter.ts';
import { LongestFirst } from './test/longest-first.ts';
import { endRun, overdueReporter } from './test/overdue-reporter.ts';
import { openRunFolder } from './test/run-folder.ts';
import { skippedReporter } from './test/skipped-reporter.ts';
import { secondsOfRun, tiers, workersOf } from './test/tiers.ts';

openRunFolder();

/** Where `.ci/run` wants the results as JSON, to sum the tiers. */
const jsonPath = process.env['RACKWRIGHT_TEST_JSON'];
const json = jsonPath === undefined ? [] : [['json', { outputFile: jsonPath }] as const];

const seconds = secondsOfRun(process.env);
const deadline = seconds === undefined ? [] : [deadlineReporter(seconds)];

/** Of a test, and of a hook. */
const timeoutMs = 600_000;
const patience = { importMs: 300_000, hookMs: timeoutMs, graceMs: 120_000 };

export default defineConfig({
  test: {
    // Generous: a busy machine is not a failure, and takes ten times as long as a quiet one.
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    expect: { poll: { timeout: 120_000 } },
    // The files of a worker share one process and its modules: to load these for each file costs a
    // fifth of the time. No test changes its process, or it puts back what it changed.
    isolate: false,
    // Node loads the sources itself: its live bindings cost nothing, those of Vitest's own loader a
    // seventh of the processor time of the unit tests.
    experimental: { viteModuleRunner: false },
    // Other tests need the processors: threads of the collector cost more than they save.
    execArgv: ['--single-threaded-gc'],
    // So do threads of programs in Go: three NATS servers take a fifth less with one each.
    env: { GOMAXPROCS: '1' },
    maxWorkers: workersOf(availableParallelism(), process.argv, seconds),
    sequence: { sequencer: LongestFirst },
    reporters: [
      'default',
      ...deadline,
      attemptsReporter(),
      skippedReporter,
      overdueReporter(patience, endRun),
      ...json,
    ],
    projects: tiers.map((tier) => ({
      extends: true as const,
      test: {
        name: tier.name,
        retry: tier.name === 'system' ? Number(process.env['RACKWRIGHT_TEST_RETRIES'] ?? 0) : 0,
        include: [...tier.include],
        exclude: ['**/node_modules/**', ...tier.exclude],
        globalSetup: tier.setup === undefined ? [] : [tier.setup],
      },
    })),
  },
});
