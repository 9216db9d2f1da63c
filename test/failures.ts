/**
 * What failed in one tier of `.ci/run`, short enough to stand at the end of its log:
 * `node test/failures.ts <tier> <exit code> <log> <vitest JSON>`.
 *
 * F1 A tier that ended badly is named, whatever it printed.
 * F2 No tier fills the log: failures, lines of each and columns of a line are bounded.
 */
import { existsSync, readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const failuresMax = 20;
const linesMax = 8;
const columnsMax = 240;
const lastLinesMax = 25;

export interface Failure {
  readonly name: string;
  /** The first lines of what it said. */
  readonly lines: readonly string[];
}

/** Failed tests of a vitest report, and files that failed without one. */
export function failuresOfJson(text: string, root: string): Failure[] {
  const report: {
    testResults: {
      name: string;
      status: string;
      message: string;
      assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
    }[];
  } = JSON.parse(text);
  return report.testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = name.startsWith(root) ? name.slice(root.length) : name;
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) {
      return [{ name: file, lines: linesOf(message) }];
    }
    return failed.map(({ fullName, failureMessages }) => ({
      name: `${file} > ${fullName}`,
      lines: linesOf(failureMessages.join('\n')),
    }));
  });
}

/** Checks of a laboratory, and commands of `npm run check`, that say that they failed. */
export function failuresOfLog(text: string): Failure[] {
  const lines = linesOf(text);
  return lines.flatMap((line, index) => {
    const found = /^ {2}FAIL {1,2}(.*)|^FAILED {2}(.*)/.exec(line);
    if (found === null) return [];
    const next = lines.slice(index + 1);
    const end = next.findIndex((each) =>
      /^ {2}(ok|FAIL) |^(ok|FAILED) |^---|^\d+ passed/.test(each),
    );
    return [{ name: found[1] ?? found[2] ?? '', lines: end < 0 ? next : next.slice(0, end) }];
  });
}

/** All of a tier that counts as failed (F1, F2). */
export function describeTier(
  tier: string,
  exitCode: number,
  log: string,
  failures: readonly Failure[],
): string[] {
  const text = [`--- ${tier} ended with ${exitCode}`];
  for (const { name, lines } of failures.slice(0, failuresMax)) {
    text.push(`FAILED ${tier}: ${name}`, ...lines.slice(0, linesMax).map((line) => `    ${line}`));
  }
  if (failures.length > failuresMax) text.push(`and ${failures.length - failuresMax} more`);
  if (failures.length === 0) {
    text.push('It names no failure; it ended with these lines:');
    text.push(
      ...linesOf(log)
        .slice(-lastLinesMax)
        .map((line) => `    ${line}`),
    );
  }
  return text.map((line) => line.slice(0, columnsMax));
}

function linesOf(text: string): string[] {
  return stripVTControlCharacters(text)
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '');
}

if (import.meta.main) {
  const [tier = '', exitCode = '1', logPath = '', jsonPath = ''] = process.argv.slice(2);
  const read = (path: string): string | undefined =>
    existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  const log = read(logPath) ?? '';
  const json = read(jsonPath);
  const failures =
    json === undefined ? failuresOfLog(log) : failuresOfJson(json, `${process.cwd()}/`);
  for (const line of describeTier(tier, Number(exitCode), log, failures)) console.log(line);
}
