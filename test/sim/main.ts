/**
 * `npm run sim -- [--seed N | --runs K | --minutes M] [--hosts H] [--planted FAULT]`: runs
 * simulated racks and says what they went through. Without `--seed` the seeds are fresh ones, or
 * with `--from N` those from N on.
 * `--trace LINES` prints the end of a seed's trace, `--all` goes on after a failure,
 * `--operators` and `--no-operators` decide whether people act by the API, `--workflows` and
 * `--no-workflows` whether they write templates and run workflows, `--discovery` whether machines
 * netboot that nobody knows, `--batches` whether workflows are run on many hosts at once,
 * `--pools` whether pools keep hosts on images, `--views` whether fleet views are compared with the
 * store.
 *
 * `npm run sim -- --planted [NAME]` breaks the code in every way of the table, in one, or in those
 * that the simulation or a named test has to notice (`simulation`, `test`), and shows the seed or
 * the test that noticed it.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { addFigures, type Figures, figureLines } from './figures.ts';
import { runPlanted } from './planted/all.ts';
import { type PlantedFault, plantedFaults } from './planted.ts';
import { type Batch, type BatchEnd, type Failure, inParallel } from './workers.ts';
import { runWorld, type WorldResult } from './world.ts';

const traceLinesDefault = 60;
/** Seeds that a worker takes at once. */
const batchSeeds = 20;

/** `--planted` without a name. */
const every = 'every';

const usage = `npm run sim -- [--seed N | --runs K | --minutes M] [--from N] [--hosts H]
               [--workers W] [--trace LINES] [--all] [--operators | --no-operators]
               [--[no-]workflows] [--[no-]discovery] [--[no-]batches] [--[no-]pools]
               [--[no-]views]
npm run sim -- --planted [NAME|simulation|test]`;

const values = valuesOf(
  process.argv.slice(2).flatMap((word, at, all) => {
    const bare = word === '--planted' && (all[at + 1] ?? '--').startsWith('--');
    return bare ? [word, every] : [word];
  }),
);

/** Ends the program where it does not understand. */
function valuesOf(args: string[]) {
  try {
    return parseArgs({
      args,
      allowNegative: true,
      options: {
        seed: { type: 'string' },
        from: { type: 'string' },
        runs: { type: 'string', default: '100' },
        minutes: { type: 'string' },
        hosts: { type: 'string', default: '2' },
        workers: { type: 'string', default: '2' },
        trace: { type: 'string' },
        operators: { type: 'boolean' },
        workflows: { type: 'boolean' },
        discovery: { type: 'boolean' },
        views: { type: 'boolean' },
        batches: { type: 'boolean' },
        pools: { type: 'boolean' },
        all: { type: 'boolean', default: false },
        planted: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    return process.exit(2);
  }
}

process.exitCode = await main();

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const planted = plantedFaults.find((fault) => fault === values.planted);
  if (values.planted !== undefined && planted === undefined) {
    const name = values.planted === every ? undefined : values.planted;
    return runPlanted(name, Number(values.workers));
  }
  const first = Number(values.seed ?? values.from ?? Math.floor(Date.now() / 1000) * 1_000);
  const asked = {
    hosts: Number(values.hosts),
    first,
    runs: values.minutes === undefined ? Number(values.runs) : Number.MAX_SAFE_INTEGER - first,
    workers: Number(values.workers),
    minutes: Number(values.minutes ?? 1),
  };
  if (!Object.values(asked).every((value) => Number.isSafeInteger(value) && value > 0)) {
    console.error(
      '--seed, --from, --runs, --minutes, --hosts and --workers take whole numbers from 1',
    );
    return 2;
  }
  const { hosts, runs, workers } = asked;
  const { operators, workflows, discovery, batches, pools, views } = values;
  const options = {
    hosts,
    ...(planted === undefined ? {} : { planted }),
    ...(operators === undefined ? {} : { operators }),
    ...(workflows === undefined ? {} : { workflows }),
    ...(discovery === undefined ? {} : { discovery }),
    ...(batches === undefined ? {} : { batches }),
    ...(pools === undefined ? {} : { pools }),
    ...(views === undefined ? {} : { views }),
  };
  if (values.seed !== undefined) return runOne(first, options);
  const untilMs = values.minutes === undefined ? undefined : Date.now() + asked.minutes * 60_000;
  return runMany({ first, runs, untilMs, workers }, options);
}

interface BatchOptions {
  readonly first: number;
  readonly runs: number;
  /** No batch is begun after that. */
  readonly untilMs: number | undefined;
  readonly workers: number;
}

interface Options {
  readonly hosts: number;
  readonly planted?: PlantedFault;
  readonly operators?: boolean;
  readonly workflows?: boolean;
  readonly discovery?: boolean;
  readonly batches?: boolean;
  readonly pools?: boolean;
  readonly views?: boolean;
}

async function runOne(seed: number, options: Options): Promise<number> {
  const traceLines = Number(values.trace ?? traceLinesDefault);
  const startedMs = Date.now();
  const result = await runWorld({ seed, ...options, traceLines });
  if (values.trace !== undefined || result.violations.length > 0) {
    for (const line of result.trace) console.log(line);
  }
  const sum = { seeds: 1, hosts: options.hosts, ...result };
  printSum(sum, result.figures, Date.now() - startedMs);
  if (result.violations.length > 0) printFailure(result);
  return result.violations.length > 0 ? 1 : 0;
}

async function runMany(asked: BatchOptions, options: Options): Promise<number> {
  const sum = { seeds: 0, hosts: 0, events: 0, crashes: 0, simulatedMs: 0 };
  const figures: Figures = new Map();
  const startedMs = Date.now();
  console.log(`seeds from ${asked.first}`);
  const failures: Failure[] = [];
  const take = (end: BatchEnd) => {
    sum.seeds += end.seeds;
    sum.hosts += end.seeds * options.hosts;
    sum.events += end.events;
    sum.crashes += end.crashes;
    sum.simulatedMs += end.simulatedMs;
    addFigures(figures, new Map(end.figures));
    for (const { seed, rule, text } of end.failures) console.log(`${seed}: ${rule}: ${text}`);
    failures.push(...end.failures);
  };
  const stopped = () => failures.length > 0 && !values.all;
  await inParallel(batches(asked, options, stopped), asked.workers, take);
  printSum(sum, figures, Date.now() - startedMs);
  const [failure] = failures;
  if (failure === undefined) return 0;
  // Once more, for its trace: the same seed gives the same.
  return values.all ? 1 : runOne(failure.seed, options);
}

function* batches(asked: BatchOptions, options: Options, stopped: () => boolean): Generator<Batch> {
  for (let done = 0; done < asked.runs; done += batchSeeds) {
    if (stopped() || (asked.untilMs !== undefined && Date.now() > asked.untilMs)) return;
    const seeds = Math.min(batchSeeds, asked.runs - done);
    yield { first: asked.first + done, seeds, ...options };
  }
}

interface Sum {
  readonly seeds: number;
  readonly hosts: number;
  readonly events: number;
  readonly crashes: number;
  readonly simulatedMs: number;
}

function printSum(sum: Sum, figures: ReadonlyMap<string, number>, wallMs: number): void {
  for (const line of figureLines(figures)) console.log(line);
  console.log(
    `${sum.seeds} seeds, ${sum.hosts} hosts, ${sum.events} events, ${sum.crashes} crashes, ` +
      `${Math.round(sum.simulatedMs / 60_000)} simulated minutes ` +
      `in ${(wallMs / 1000).toFixed(1)} s`,
  );
}

function printFailure(result: WorldResult): void {
  for (const { rule, atMs, text } of result.violations) {
    console.log(`${rule} violated at ${(atMs / 1000).toFixed(3)} s: ${text}`);
  }
  const hosts = values.hosts === '2' ? '' : ` --hosts ${values.hosts}`;
  console.log(`again: npm run sim -- --seed ${result.seed}${hosts}`);
  console.log(`seed ${result.seed}, commit ${commit()}, trace ${result.traceHash}`);
}

/** Which commit a seed failed at, for whoever runs it again; a copy without git has none. */
function commit(): string {
  const args = ['-c', 'safe.directory=*', 'rev-parse', '--short', 'HEAD'];
  const { stdout } = spawnSync('git', args, { encoding: 'utf8' });
  return stdout?.trim() || 'unknown';
}
