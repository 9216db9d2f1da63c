/** Each test skips itself, with a reason, where the machine cannot carry it. */
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { skippedReporter } from './test/skipped-reporter.ts';
import { tiers } from './test/tiers.ts';

/** Where `.ci/run` wants the results as JSON, to sum the tiers. */
const jsonPath = process.env['RACKWRIGHT_TEST_JSON'];
const json = jsonPath === undefined ? [] : [['json', { outputFile: jsonPath }] as const];

export default defineConfig({
  test: {
    // Generous: a busy machine is not a failure.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 120_000 } },
    // Vitest would leave one processor idle: most tests wait more than they compute.
    maxWorkers: availableParallelism(),
    reporters: ['default', skippedReporter, ...json],
    projects: tiers.map(({ name, include, exclude, order, isolate, setup }) => ({
      extends: true as const,
      test: {
        name,
        include: [...include],
        exclude: ['**/node_modules/**', ...exclude],
        sequence: { groupOrder: order },
        isolate,
        globalSetup: setup === undefined ? [] : [setup],
      },
    })),
  },
});
