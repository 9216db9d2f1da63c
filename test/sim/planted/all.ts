/**
 * Breaks the code in every way of the table, one after another, and shows what noticed it. A fault
 * that nothing notices says that simulation and tests prove less than they seem to.
 */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type HuntOutcome, violationIn } from './hunt.ts';
import type { Hunted, Plant } from './plant.ts';
import { plants } from './table.ts';

/** Seeds among which the simulation must notice a fault. */
const seedsMax = 200;
/**
 * Seconds of processor time: a broken program may hang as well, and that is not the same as being
 * noticed. On a machine that others use, any time by the clock may pass.
 */
const huntMaxCpuSeconds = 300;
/** The same for one that hangs and computes nothing. */
const huntMsMax = 3_600_000;

const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

interface Outcome {
  readonly plant: Plant;
  readonly caught: boolean;
  readonly text: string;
  readonly seconds: number;
}

/**
 * Hunts all planted faults, those that `which` has to notice ("simulation" or "test"), or the one
 * that it names, so many side by side; the exit code.
 */
export async function runPlanted(which: string | undefined, workers: number): Promise<number> {
  const chosen = plants.filter(
    ({ name, caughtBy }) => which === undefined || which === name || which === caughtBy.kind,
  );
  if (chosen.length === 0) {
    console.error(`no planted fault is called ${which}; there are:`);
    for (const plant of plants) console.error(`  ${plant.name}: ${plant.breaks}`);
    return 2;
  }
  const waiting = [...chosen];
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let plant = waiting.shift(); plant !== undefined; plant = waiting.shift()) {
      const outcome = await outcomeOf(plant);
      outcomes.push(outcome);
      print(outcome);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  const survivors = outcomes.filter(({ caught }) => !caught);
  console.log(`${outcomes.length - survivors.length} of ${outcomes.length} planted faults caught`);
  return survivors.length === 0 ? 0 : 1;
}

function print({ plant, caught, text, seconds }: Outcome): void {
  const verdict = caught ? 'caught  ' : 'SURVIVED';
  console.log(`${verdict} ${plant.name.padEnd(28)} ${seconds.toFixed(0).padStart(3)} s  ${text}`);
}

async function outcomeOf(plant: Plant): Promise<Outcome> {
  const startedMs = Date.now();
  const outcome = plant.caughtBy.kind === 'test' ? await byTest(plant) : await bySimulation(plant);
  return { plant, ...outcome, seconds: (Date.now() - startedMs) / 1_000 };
}

type Verdict = Pick<Outcome, 'caught' | 'text'>;

async function bySimulation({ name, caughtBy }: Plant): Promise<Verdict> {
  if (caughtBy.kind !== 'simulation') throw new Error(`${name} is not caught by simulation`);
  const { kind: _kind, ...worlds } = caughtBy;
  const { from = 1 } = worlds;
  try {
    for (let first = from; first < from + seedsMax; ) {
      const found = await hunt(name, first, from + seedsMax - first, worlds);
      if (found.kind === 'survived') break;
      const { seed, text } = found;
      if (await isClean(seed, worlds)) return { caught: true, text: `seed ${seed}: ${text}` };
      first = seed + 1;
    }
    return { caught: false, text: `nothing was noticed in ${seedsMax} seeds` };
  } catch (error) {
    return { caught: false, text: lastLines(error) };
  }
}

async function hunt(
  name: string,
  first: number,
  seeds: number,
  worlds: Hunted,
): Promise<HuntOutcome> {
  const program = fileURLToPath(new URL('hunt.ts', import.meta.url));
  const argv = [program, name, String(first), String(seeds), JSON.stringify(worlds)];
  const { stdout } = await start(argv, {});
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as HuntOutcome;
}

const clean = new Map<string, Promise<boolean>>();

/** Whether every promise is kept in this seed without a planted fault: none is loaded here. */
function isClean(seed: number, worlds: Hunted): Promise<boolean> {
  const key = `${seed} ${JSON.stringify(worlds)}`;
  const known = clean.get(key) ?? violationIn(seed, worlds).then((text) => text === undefined);
  clean.set(key, known);
  return known;
}

/** Green without the fault, for it is one of the tests that everybody runs; red with it. */
async function byTest({ name, caughtBy }: Plant): Promise<Verdict> {
  if (caughtBy.kind !== 'test') throw new Error(`${name} is not caught by a test`);
  const vitest = fileURLToPath(new URL('node_modules/vitest/vitest.mjs', `file://${root}`));
  const config = fileURLToPath(new URL('vitest.config.ts', import.meta.url));
  const report = join(root, '.cache/planted', `${name}.json`);
  const chosen = ['--config', config, caughtBy.file, '-t', caughtBy.name];
  const reporting = ['--reporter=json', `--outputFile=${report}`];
  await rm(report, { force: true });
  try {
    await start([vitest, 'run', ...chosen, ...reporting], { RACKWRIGHT_PLANT: name });
    return { caught: false, text: `${caughtBy.file} is green` };
  } catch (error) {
    const [failed] = await failedTests(report);
    if (failed === undefined) return { caught: false, text: lastLines(error) };
    return { caught: true, text: `${caughtBy.file}: ${failed}` };
  }
}

async function start(argv: readonly string[], env: Record<string, string>) {
  const options = { cwd: root, timeout: huntMsMax, maxBuffer: 64 * 1024 * 1024 };
  const limited = ['-c', `ulimit -t ${huntMaxCpuSeconds}; exec "$@"`, 'sh', process.execPath];
  return run('sh', [...limited, ...argv], { ...options, env: { ...process.env, ...env } });
}

interface JsonReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly title: string }[];
  }[];
}

/** Names of the tests that failed: a file that cannot even be loaded has noticed nothing. */
async function failedTests(reportPath: string): Promise<string[]> {
  const text = await readFile(reportPath, 'utf8').catch(() => '{"testResults":[]}');
  return (JSON.parse(text) as JsonReport).testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
    .map(({ title }) => title);
}

function lastLines(error: unknown): string {
  const { stderr = '', signal } = error as { stderr?: string; signal?: NodeJS.Signals | null };
  const limits = `${huntMaxCpuSeconds} s of processor time, ${huntMsMax / 1_000} s in all`;
  if (signal) return `ended by ${signal}; its limits are ${limits}`;
  return stderr.trim().split('\n').slice(-6).join(' | ') || String(error);
}
