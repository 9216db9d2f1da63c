/** `npm run sim -- --seed N | --runs K [--hosts H] [--planted FAULT]`: runs simulated racks. */
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { type PlantedFault, plantedFaults } from './planted.ts';
import { runWorld, type WorldResult } from './world.ts';

const traceLines = 60;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    runs: { type: 'string', default: '100' },
    hosts: { type: 'string', default: '2' },
    planted: { type: 'string' },
  },
});

process.exitCode = await main();

async function main(): Promise<number> {
  const hosts = Number(values.hosts);
  const planted = plantedFaults.find((fault) => fault === values.planted);
  if (values.planted !== undefined && planted === undefined) {
    console.error(`--planted ${values.planted}: one of ${plantedFaults.join(', ')}`);
    return 2;
  }
  const first = values.seed === undefined ? Math.floor(Date.now() / 1000) : Number(values.seed);
  const runs = values.seed === undefined ? Number(values.runs) : 1;
  if (![hosts, first, runs].every((value) => Number.isSafeInteger(value) && value > 0)) {
    console.error('--seed, --runs and --hosts take whole numbers from 1');
    return 2;
  }
  return runSeeds(first, runs, hosts, planted);
}

async function runSeeds(
  first: number,
  runs: number,
  hosts: number,
  planted: PlantedFault | undefined,
): Promise<number> {
  let events = 0;
  let crashes = 0;
  let simulatedMs = 0;
  const startedMs = Date.now();
  for (let seed = first; seed < first + runs; seed++) {
    const options = { seed, hosts, traceLines, ...(planted === undefined ? {} : { planted }) };
    const result = await runWorld(options);
    if (result.violations.length > 0) {
      printFailure(result);
      return 1;
    }
    events += result.events;
    crashes += result.crashes;
    simulatedMs += result.simulatedMs;
  }
  const wallMs = Date.now() - startedMs;
  console.log(
    `seeds ${first} to ${first + runs - 1}: ${events} events, ${crashes} crashes, ` +
      `${Math.round(simulatedMs / 60_000)} simulated minutes in ${(wallMs / 1000).toFixed(1)} s; ` +
      'every promise kept',
  );
  return 0;
}

function printFailure(result: WorldResult): void {
  for (const line of result.trace) console.log(line);
  for (const { rule, atMs, text } of result.violations) {
    console.log(`${rule} violated at ${(atMs / 1000).toFixed(3)} s: ${text}`);
  }
  console.log(`seed ${result.seed}, commit ${commit()}, trace ${result.traceHash}`);
}

function commit(): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
}
