/**
 * Ends a run when its time is over: no further test begins, and the run says how many files were
 * not run. Failures stay failures. For `.ci/run`, on a machine that is several times slower than
 * usual. It has to stand before reporters that make a run fail.
 */
import type { Reporter, TestSpecification, Vitest } from 'vitest/node';

/** The closing line; `.ci/run` counts these files as skipped. */
export function describeNotRun(files: number): string {
  return `Not run, for the time was over: ${files} files`;
}

/** How many files a log says were not run. */
export function notRunOf(log: string): number {
  return Number(/^Not run, for the time was over: (\d+) files$/m.exec(log)?.[1] ?? 0);
}

/** The reporter for vitest's configuration: `seconds` from the start of the tests. */
export function deadlineReporter(seconds: number): Reporter {
  let vitest: Vitest | undefined;
  let planned: readonly TestSpecification[] = [];
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  return {
    onInit(instance) {
      vitest = instance;
    },
    onTestRunStart(specifications) {
      planned = specifications;
      timer = setTimeout(() => {
        isOver = true;
        // The reason that Vitest has for a run that ends before its last test.
        void vitest?.cancelCurrentRun('test-failure');
      }, seconds * 1_000);
    },
    onTestRunEnd(modules, errors) {
      clearTimeout(timer);
      if (!isOver) return;
      // Vitest calls a run that was ended early a failure, also when no test failed.
      if (errors.length === 0 && modules.every((module) => module.ok())) process.exitCode = 0;
      const ran = modules.filter((module) => !['queued', 'pending'].includes(module.state()));
      console.log(`\n${describeNotRun(planned.length - ran.length)}`);
    },
  };
}
