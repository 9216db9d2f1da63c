/**
 * `npm run mutate -- NAME [--all] [--every N]`: breaks the code of one subject in many small ways
 * (Stryker), runs its tests against each, and tells the share that was noticed and the mutants that
 * were not. Ends with 1 below the subject's floor. `--all` begins anew; otherwise only what has
 * changed since the last run is tried again. `--every N` tries a fixed random sample: about one
 * mutant of N. It takes from 5 minutes to an hour, so nobody runs it but by hand.
 *
 * Invariants:
 * 1. Nothing in this clone is written but `.cache/mutate`: Stryker works in place on a clone of the
 *    last commit that stands there. What is not committed is not tried.
 * 2. Stryker is no dependency: its exact version is installed there when it is first needed.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { programArguments } from '../program-arguments.ts';
import { type Report, scoreOf, survivorLines } from './report.ts';
import { sampleChecker } from './sample.ts';
import { type Subject, subjects } from './subjects.ts';

const strykerVersion = '10.1.1';
const root = resolve(import.meta.dirname, '../..');
const place = join(root, '.cache/mutate');
const clone = join(place, 'clone');
const ownScope = '@rackwright';

const { positionals, values } = programArguments({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    every: { type: 'string', default: '1' },
  },
});
const [name = ''] = positionals;
const subject = subjects[name];
const beginsAnew = values.all;
const sampleEvery = /^[1-9]\d{0,3}$/.test(values.every) ? Number(values.every) : undefined;
if (subject === undefined || positionals.length > 1 || sampleEvery === undefined) {
  const names = Object.keys(subjects).join(', ');
  console.error(`npm run mutate -- NAME [--all] [--every N], NAME one of ${names}`);
  process.exit(2);
}
process.exitCode = run(name, subject, sampleEvery);

function run(of: string, { code, tests, floorPercent }: Subject, every: number): number {
  mkdirSync(place, { recursive: true });
  installStryker();
  cloneLastCommit();
  linkModules();
  const report = join(place, `${of}.report.json`);
  // What a sample leaves out is remembered as refused.
  const known = join(place, every === 1 ? `${of}.known.json` : `${of}.known-${every}.json`);
  if (beginsAnew) rmSync(known, { force: true });
  rmSync(report, { force: true });
  writeFileSync(join(clone, 'vitest.mutate.config.ts'), vitestConfig(tests));
  const config = strykerConfig(code, { report, known }, every);
  writeFileSync(join(clone, 'stryker.config.json'), JSON.stringify(config));
  const program = join(place, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const args = [program, 'run', 'stryker.config.json'];
  spawnSync(process.execPath, args, { cwd: clone, stdio: 'inherit' });
  if (!existsSync(report)) {
    console.error('Stryker left no report');
    return 2;
  }
  return tell(
    every === 1 ? of : `${of}, a sample of 1 in ${every}`,
    JSON.parse(readFileSync(report, 'utf8')) as Report,
    floorPercent,
  );
}

function tell(of: string, report: Report, floorPercent: number): number {
  const { noticed, survived, percent } = scoreOf(report);
  for (const line of survivorLines(report)) console.log(line);
  const share = `${noticed} of ${noticed + survived} noticed`;
  console.log(`${of}: ${percent.toFixed(1)} % (${share}), the floor is ${floorPercent} %`);
  return percent < floorPercent ? 1 : 0;
}

/** Its peer, the vitest of this repository, is linked and not installed a second time. */
function installStryker(): void {
  const installed = join(place, 'node_modules/@stryker-mutator/core/package.json');
  const isThere =
    existsSync(installed) &&
    (JSON.parse(readFileSync(installed, 'utf8')) as { version: string }).version === strykerVersion;
  if (!isThere) {
    writeFileSync(join(place, 'package.json'), '{ "private": true }');
    const packages = ['core', 'vitest-runner'].map(
      (part) => `@stryker-mutator/${part}@${strykerVersion}`,
    );
    const flags = ['--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund'];
    execFileSync('npm', ['install', ...flags, ...packages], { cwd: place, stdio: 'inherit' });
  }
  const vitest = join(place, 'node_modules/vitest');
  rmSync(vitest, { recursive: true, force: true });
  symlinkSync(join(root, 'node_modules/vitest'), vitest);
}

function cloneLastCommit(): void {
  const git = (folder: string, ...args: string[]) =>
    execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8' }).trim();
  if (!existsSync(clone)) git(place, 'clone', '--quiet', '--shared', '--no-checkout', root, clone);
  git(clone, 'fetch', '--quiet', root, 'HEAD');
  git(clone, 'checkout', '--quiet', '--force', '--detach', 'FETCH_HEAD');
}

/** The modules of this repository; its own packages are those of the clone, which are broken. */
function linkModules(): void {
  const [ours, theirs] = [join(root, 'node_modules'), join(clone, 'node_modules')];
  rmSync(theirs, { recursive: true, force: true });
  mkdirSync(join(theirs, ownScope), { recursive: true });
  for (const entry of readdirSync(ours)) {
    if (entry !== ownScope) symlinkSync(join(ours, entry), join(theirs, entry));
  }
  for (const entry of readdirSync(join(ours, ownScope))) {
    symlinkSync(readlinkSync(join(ours, ownScope, entry)), join(theirs, ownScope, entry));
  }
}

/** One process for all files: what a mutant costs is starting them. */
function vitestConfig(tests: readonly string[]): string {
  const include = tests.map((folder) => `${folder}/**/*.test.ts`);
  const exclude = ['**/node_modules/**', '**/*.{slow,peer}.test.ts'];
  const test = { include, exclude, isolate: false, testTimeout: 20_000 };
  return `export default ${JSON.stringify({ test })};\n`;
}

function strykerConfig(
  code: readonly string[],
  files: { readonly report: string; readonly known: string },
  every: number,
) {
  const tests = ['test.ts', 'fixture.ts'].map((ending) => `!**/*.${ending}`);
  return {
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner', join(import.meta.dirname, 'sample.ts')],
    vitest: { configFile: 'vitest.mutate.config.ts', related: false },
    inPlace: true,
    mutate: [...code.map((folder) => `${folder}/**/*.ts`), ...tests, '!**/testing/**'],
    // Texts are for people; types are checked by the compiler, not by tests.
    mutator: { excludedMutations: ['StringLiteral'] },
    checkers: every === 1 ? [] : [sampleChecker],
    sampleEvery: every,
    disableTypeChecks: false,
    // Each mutant of what runs as a module loads would need all tests in a new process.
    ignoreStatic: true,
    coverageAnalysis: 'perTest',
    concurrency: 1,
    // Long: on a busy machine a mutant that nobody notices must not pass for one without end.
    timeoutMS: 60_000,
    incremental: true,
    incrementalFile: files.known,
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: files.report },
  };
}
