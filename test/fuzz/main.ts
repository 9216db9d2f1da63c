/**
 * `npm run fuzz -- [--minutes M | --each M] [--target NAME,…] [--seed N] [--workers K]
 * [--inputs N] [--keep] [--list]`: fuzzes the parsers of `targets`, or those that are named.
 *
 * `--minutes` is the time of all targets together, `--each` that of each of them. `--inputs` ends a
 * target after so many inputs, which makes the run repeatable. `--keep` adds the inputs that
 * reached new code to the corpus. A target's name may end with `*`. A failure is made smaller and
 * added to the corpus; the exit code is 1 then.
 */
import { parseArgs } from 'node:util';
import { addToCorpus } from './corpus.ts';
import { escapeBytes } from './escape.ts';
import { type FuzzEnd, fuzzTarget } from './fuzz-target.ts';
import type { Target } from './target.ts';
import { allTargets } from './targets.ts';

const usage = `npm run fuzz -- [--minutes M | --each M] [--target NAME,…] [--seed N] [--workers K]
                [--inputs N] [--keep]
npm run fuzz -- --list`;
/** Longer inputs are not added to the corpus, bytes. */
const keptBytesMax = 2_048;

const options = {
  minutes: { type: 'string', default: '1' },
  each: { type: 'string' },
  target: { type: 'string', default: '*' },
  seed: { type: 'string' },
  workers: { type: 'string', default: '1' },
  inputs: { type: 'string', default: String(Number.MAX_SAFE_INTEGER) },
  keep: { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
} as const;

process.exitCode = await main();

async function main(): Promise<number> {
  const values = valuesOf(process.argv.slice(2));
  const targets = await allTargets();
  if (values === undefined) return refuse(usage);
  if (values.list) {
    for (const { name, form, seeds } of targets)
      console.log(`${name}  ${form}, ${seeds.length} seeds`);
    return 0;
  }
  const names = values.target.split(',');
  const unknown = names.filter((name) => !targets.some((target) => isNamed(target, name)));
  if (unknown.length > 0) return refuse(`no target is named ${unknown.join(', ')}; see --list`);
  const chosen = targets.filter((target) => names.some((name) => isNamed(target, name)));
  const numbers = {
    minutes: Number(values.each ?? values.minutes),
    seed: Number(values.seed ?? Math.floor(Date.now() / 1_000)),
    workers: Number(values.workers),
    inputs: Number(values.inputs),
  };
  if (!Object.values(numbers).every((value) => value > 0) || !Number.isInteger(numbers.workers)) {
    return refuse(`the numbers have to be above 0\n${usage}`);
  }
  const share = values.each === undefined ? numbers.workers / chosen.length : 1;
  const { seed, inputs } = numbers;
  const seconds = numbers.minutes * 60 * share;
  const limits = { failuresMax: 5, reduceSeconds: 60, reduceProcesses: 40 };
  const settings = { seed, inputs, seconds, ...limits };
  console.log(`seed ${seed}, ${chosen.length} targets, ${seconds.toFixed(1)} s for each`);
  const failed = await fuzzAll(chosen, numbers.workers, settings, values.keep);
  const well = chosen.length - failed;
  console.log(`${well} passed, ${failed} failed, 0 skipped`);
  return failed === 0 ? 0 : 1;
}

function valuesOf(args: string[]) {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    console.error(error.message);
    return undefined;
  }
}

function refuse(text: string): number {
  console.error(text);
  return 2;
}

/** A pattern ends in "*". */
function isNamed(target: Target, pattern: string): boolean {
  return pattern.endsWith('*')
    ? target.name.startsWith(pattern.slice(0, -1))
    : target.name === pattern;
}

/** Gives how many targets have failed. */
async function fuzzAll(
  targets: readonly Target[],
  workers: number,
  settings: Parameters<typeof fuzzTarget>[1],
  keep: boolean,
): Promise<number> {
  const waiting = [...targets];
  let failed = 0;
  const work = async (): Promise<void> => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      const end = await fuzzTarget(target, settings);
      report(target, end, keep);
      if (end.failures.length > 0) failed += 1;
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return failed;
}

function report(target: Target, end: FuzzEnd, keep: boolean): void {
  const { inputs, seconds, places, reached, failures } = end;
  const small = reached.filter((input) => input.length <= keptBytesMax);
  const kept = keep ? addToCorpus(target.name, 'reached.txt', small) : 0;
  const rate = seconds > 0 ? Math.round(inputs / seconds) : 0;
  const news = `${reached.length} reached new code${keep ? `, ${kept} kept` : ''}`;
  const head = failures.length === 0 ? '  ok  ' : '  FAIL';
  console.log(
    `${head} ${target.name}: ${inputs} inputs, ${rate}/s, ${places} places, ${news}, ` +
      `${failures.length} failures`,
  );
  for (const { failure, input, alone } of failures) {
    const after = alone ? '' : ', only after other inputs';
    console.log(`       ${failure.kind} (${failure.signature})${after}: ${failure.text}`);
    console.log(`       input: ${escapeBytes(input.subarray(0, 500))}`);
  }
  addToCorpus(
    target.name,
    'failures.txt',
    failures.map(({ input }) => input),
  );
}
