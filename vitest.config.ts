/**
 * The tiers as vitest projects. `npm run check` runs unit and tidy; `npm test` runs all, each test
 * skipping itself, with a reason, where the machine cannot carry it.
 */
import { defineConfig } from 'vitest/config';
import { skippedReporter } from './test/skipped-reporter.ts';

/** Where `.ci/run` wants the results as JSON, to sum the tiers. */
const jsonPath = process.env['RACKWRIGHT_TEST_JSON'];
const json = jsonPath === undefined ? [] : [['json', { outputFile: jsonPath }] as const];

const slow = '**/*.{peer,slow}.test.ts';
const sources = '{packages/*,agent,controlplane}/**/*.test.ts';

export default defineConfig({
  test: {
    // Generous: a busy machine is not a failure.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', skippedReporter, ...json],
    projects: [
      project('unit', [sources, 'test/*.test.ts'], [slow, 'test/tidy*.test.ts']),
      project('tidy', ['test/tidy*.test.ts', 'test/tidy/**/*.test.ts'], []),
      project('slow', ['{packages/*,agent,controlplane,test}/**/*.slow.test.ts'], []),
      project('peer', ['{packages/*,agent,controlplane,test}/**/*.peer.test.ts'], []),
      project('sim', ['test/sim/**/*.test.ts'], [slow]),
      project('system', ['test/{scenarios,lab,e2e,captures}/**/*.test.ts'], [slow]),
    ],
  },
});

function project(name: string, include: string[], exclude: string[]) {
  return {
    extends: true as const,
    test: { name, include, exclude: ['**/node_modules/**', ...exclude] },
  };
}
