/**
 * Tells of failures when they happen, so that a run that is stopped has named them, and of tests
 * that needed a second attempt.
 *
 * A1 A test that passed at a second attempt is named at the end of the run. Only `.ci/run` asks for
 *    second attempts: on a machine that is too busy, a test of several programs can miss its time.
 */
import type { Reporter, TestCase } from 'vitest/node';

const linesMax = 30;

/** The first lines of an error, as a log shows them. */
export function firstLines(text: string): string {
  return text.split('\n').slice(0, linesMax).join('\n');
}

/** The closing lines (A1); empty when every test needed one attempt. */
export function describeSecondAttempts(names: readonly string[]): string {
  if (names.length === 0) return '';
  return ['Passed at the second attempt:', ...names.map((name) => `  ${name}`)].join('\n');
}

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId} > ${test.fullName}`;
}

/** The reporter for vitest's configuration. */
export function attemptsReporter(): Reporter {
  const again: string[] = [];
  return {
    onTestCaseResult(test) {
      const result = test.result();
      if (result.state === 'passed' && test.diagnostic()?.flaky === true) again.push(nameOf(test));
      if (result.state !== 'failed') return;
      const errors = result.errors.map(({ message, stack }) => firstLines(stack ?? message));
      console.log(`\nFailed: ${nameOf(test)}\n${errors.join('\n')}\n`);
    },
    onTestRunEnd() {
      const text = describeSecondAttempts(again);
      if (text !== '') console.log(`\n${text}`);
    },
  };
}
