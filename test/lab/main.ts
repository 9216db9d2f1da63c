/**
 * `npm run lab -- --check | --crossed | --bad-disk | --lying-disk | --agent-away | --kill [all]`
 *
 * Each scenario stands up a laboratory of its own, prints what it found line by line, and leaves
 * nothing behind. The exit code is 0 only when everything holds; the last line is
 * `N passed, N failed, N skipped`.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildRamdisk } from '@rackwright/runner/ramdisk';
import { startLab } from './lab.ts';
import { agentAwayScenario } from './scenarios/agent-away.ts';
import { badDiskScenario } from './scenarios/bad-disk.ts';
import { checkScenario } from './scenarios/check.ts';
import { crossedScenario } from './scenarios/crossed.ts';
import { lyingDiskScenario } from './scenarios/lying-disk.ts';
import { createFindings, type Findings, openSite, type Scenario } from './site.ts';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, '.cache');

type Name = 'check' | 'crossed' | 'bad-disk' | 'lying-disk' | 'agent-away';
const names: readonly Name[] = ['check', 'crossed', 'bad-disk', 'lying-disk', 'agent-away'];
const usage = `usage: npm run lab -- ${names.map((name) => `[--${name}]`).join(' ')}
  --verdict-off   with --lying-disk: the runner does not read back, so the scenario must fail
  --keep FOLDER   copy all logs there at the end`;

interface Options {
  readonly chosen: readonly Name[];
  readonly verdict: 'on' | 'off';
  readonly keep?: string;
}

function scenarioOf(name: Name, { verdict }: Options): Scenario {
  switch (name) {
    case 'check':
      return checkScenario;
    case 'crossed':
      return crossedScenario;
    case 'bad-disk':
      return badDiskScenario;
    case 'lying-disk':
      return lyingDiskScenario(verdict);
    case 'agent-away':
      return agentAwayScenario;
  }
}

async function runScenario(scenario: Scenario, findings: Findings, keep?: string): Promise<void> {
  const ramdisk = await buildRamdisk({
    entry: join(ROOT, 'packages/runner/src/main.ts'),
    cacheFolder: CACHE,
    outputFolder: join(CACHE, 'ramdisk'),
    now: Date.now(),
  });
  const { vmlinuz, initrd } = ramdisk;
  const kept = keep === undefined ? {} : { keep };
  const lab = await startLab({ machines: scenario.machines, vmlinuz, ...kept });
  findings.say(`laboratory ${lab.folder}, ${lab.accelerator}`);
  try {
    const kernelArguments = scenario.kernelArguments ?? [];
    await scenario.run(await openSite(lab, { vmlinuz, initrd, kernelArguments }, findings));
  } finally {
    const left = await lab.stop();
    findings.check('the laboratory leaves nothing behind', left.length === 0, left.join('; '));
  }
}

function parseOptions(words: readonly string[]): Options {
  const flags = Object.fromEntries(names.map((name) => [name, { type: 'boolean' }] as const));
  const { values } = parseArgs({
    args: [...words],
    options: { ...flags, 'verdict-off': { type: 'boolean' }, keep: { type: 'string' } },
  });
  const set = new Map<string, unknown>(Object.entries(values));
  const keep = set.get('keep');
  return {
    chosen: names.filter((name) => set.get(name) === true),
    verdict: set.get('verdict-off') === true ? 'off' : 'on',
    ...(typeof keep === 'string' ? { keep } : {}),
  };
}

async function main(options: Options): Promise<number> {
  if (options.chosen.length === 0) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  const findings = createFindings();
  for (const name of options.chosen) {
    findings.say(`--${name}`);
    try {
      await runScenario(scenarioOf(name, options), findings, options.keep);
    } catch (error) {
      findings.check(name, false, error instanceof Error ? (error.stack ?? '') : String(error));
    }
  }
  findings.say(`${findings.passed()} passed, ${findings.failed()} failed, 0 skipped`);
  return findings.failed() === 0 ? 0 : 1;
}

process.exitCode = await main(parseOptions(process.argv.slice(2)));
