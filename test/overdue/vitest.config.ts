/** For the run that `overdue-reporter.test.ts` starts. */
import { defineConfig } from 'vitest/config';
import { endRun, overdueReporter } from '../overdue-reporter.ts';
import { openRunFolder } from '../run-folder.ts';

openRunFolder();

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['./busy.fixture.ts'],
    testTimeout: 1_000,
    reporters: [overdueReporter({ importMs: 100_000, hookMs: 0, graceMs: 2_000 }, endRun)],
  },
});
