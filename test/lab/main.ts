/**
 * `npm run lab -- --check | --matrix | --unsigned-loader | --last-screen | --crossed | --bad-disk |
 *     --lying-disk | --agent-away | --workflow | --deploy |
 *     --deploy-one [--rebuild | --netboot | --silent | --shutdown] | --packages |
 *     --kill [all] | --liars [--only LIST] [--unchecked]`
 *
 * `--check`, `--matrix` and `--deploy-one` take `--firmware` and `--dhcp`: one run with each
 * firmware and giver of addresses.
 *
 * Each scenario stands up a laboratory of its own, prints what it found line by line, and leaves
 * nothing behind. The exit code is 0 only when everything holds; the last line is
 * `N passed, N failed, N skipped`.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { errorText } from '@rackwright/platform';
import { buildRamdisk, ramdiskFolder } from '@rackwright/runner/ramdisk';
import { packagesScenario } from '../packages/scenario.ts';
import {
  architectureOf,
  type BootWay,
  dhcpModes,
  firmwares,
  isBootWay,
  USUAL_BOOT,
} from './firmware.ts';
import { startLab } from './lab.ts';
import { agentAwayScenario } from './scenarios/agent-away.ts';
import { badDiskScenario } from './scenarios/bad-disk.ts';
import { checkScenario } from './scenarios/check.ts';
import { crossedScenario } from './scenarios/crossed.ts';
import { deployScenario } from './scenarios/deploy.ts';
import { deployOneScenario, type OneImage, oneImages } from './scenarios/deploy-one.ts';
import { killScenarios } from './scenarios/kill.ts';
import type { LiarName } from './scenarios/liars/cases.ts';
import { liarNames, liarScenarios } from './scenarios/liars/liars.ts';
import { lyingDiskScenario } from './scenarios/lying-disk.ts';
import { matrixScenarios, printMatrix } from './scenarios/matrix.ts';
import { lastScreenScenario, unsignedScenario } from './scenarios/unsigned.ts';
import { workflowScenario } from './scenarios/workflow.ts';
import { createFindings, type Findings, openSite, type Scenario } from './site.ts';

const ROOT = join(import.meta.dirname, '../..');

const names = [
  'check',
  'matrix',
  'unsigned-loader',
  'last-screen',
  'crossed',
  'bad-disk',
  'lying-disk',
  'agent-away',
  'workflow',
  'deploy',
  'deploy-one',
  'packages',
  'kill',
  'liars',
] as const;
type Name = (typeof names)[number];

const WITH_BOOTS = '--check, --matrix or --deploy-one';

const usage = `usage: npm run lab -- ${names.map((name) => `[--${name}]`).join(' ')}
  --firmware LIST of ${firmwares.join(', ')}:
                  with ${WITH_BOOTS}, a run with each; default bios, of a matrix all
  --dhcp LIST     of ${dhcpModes.join(', ')}: likewise; default proxy, of a matrix all;
                  off is for uefi-http6 alone: the site's DHCPv6 names what it boots;
                  u-boot goes with reservation alone
  --rebuild       with --deploy-one: rescue, and the image anew with a disk kept
  --netboot       with --deploy-one: the image is booted over the network, without a disk
  --silent        with --deploy-one: the image never phones home
  --shutdown      with --deploy-one: it stops when it is asked to, and is forced when it does not
  --kill all      every kill that the lab can do, not one for each process
  --verdict-off   with --lying-disk: the runner does not read back, so the scenario must fail
  --only LIST     of ${liarNames.join(', ')}: with --liars, these machines alone
  --unchecked     with --liars: without the check that catches them, so the table must be red
  --keep FOLDER   copy all logs there at the end
`;

interface Options {
  readonly chosen: readonly Name[];
  readonly verdict: 'on' | 'off';
  readonly kills: 'one' | 'all';
  /** How the machine of `--check` and `--deploy-one` boots, one run each. */
  readonly boots: readonly BootWay[];
  /** What the machine of `--deploy-one` gets. */
  readonly image: OneImage;
  /** The machines of `--liars`. */
  readonly liars: readonly LiarName[];
  /** False: without the check that each is for. */
  readonly checked: boolean;
  readonly keep?: string;
}

/** The scenarios behind a name, by title. */
function scenariosOf(
  name: Name,
  { verdict, kills, boots, image, liars, checked }: Options,
): ReadonlyMap<string, Scenario> {
  switch (name) {
    case 'check':
      return new Map(boots.map((boot) => [bootTitle(name, boot), { ...checkScenario, boot }]));
    case 'matrix':
      return matrixScenarios(boots, bootTitle);
    case 'unsigned-loader':
      return new Map([[name, unsignedScenario]]);
    case 'last-screen':
      return new Map([[name, lastScreenScenario]]);
    case 'crossed':
      return new Map([[name, crossedScenario]]);
    case 'bad-disk':
      return new Map([[name, badDiskScenario]]);
    case 'lying-disk':
      return new Map([[name, lyingDiskScenario(verdict)]]);
    case 'agent-away':
      return new Map([[name, agentAwayScenario]]);
    case 'workflow':
      return new Map([[name, workflowScenario]]);
    case 'deploy':
      return new Map([[name, deployScenario]]);
    case 'deploy-one': {
      const scenario = deployOneScenario(image);
      return new Map(
        boots.map((boot) => [bootTitle(`${name}, ${image}`, boot), { ...scenario, boot }]),
      );
    }
    case 'packages':
      return new Map([[name, packagesScenario()]]);
    case 'kill':
      return killScenarios(kills);
    case 'liars':
      return liarScenarios(liars, checked);
  }
}

function bootTitle(name: string, { firmware, dhcp }: BootWay): string {
  return `${name}: ${firmware}, DHCP ${dhcp}`;
}

async function runScenario(scenario: Scenario, findings: Findings, keep?: string): Promise<void> {
  const { machines, boot = USUAL_BOOT } = scenario;
  const architecture = architectureOf(boot.firmware);
  const ramdisk = await buildRamdisk({
    architecture,
    entry: join(ROOT, 'packages/runner/src/main.ts'),
    root: ROOT,
    outputFolder: ramdiskFolder(ROOT, architecture),
    now: Date.now(),
  });
  const { vmlinuz, initrd } = ramdisk;
  const kept = keep === undefined ? {} : { keep };
  const lab = await startLab({ machines, boot, vmlinuz, ...kept });
  findings.say(`laboratory ${lab.folder}, ${lab.accelerator}`);
  try {
    const kernelArguments = scenario.kernelArguments ?? [];
    const files = { vmlinuz, initrd, kernelArguments };
    const { crash, startStack } = scenario;
    await scenario.run(await openSite(lab, files, findings, crash, startStack));
  } finally {
    const left = await lab.stop();
    findings.check('the laboratory leaves nothing behind', left.length === 0, left.join('; '));
  }
}

/** Throws for an option without the laboratory that it belongs to. */
function checkTogether(
  chosen: readonly string[],
  images: readonly string[],
  set: ReadonlyMap<string, unknown>,
): void {
  for (const way of ['firmware', 'dhcp']) {
    const fits = ['check', 'matrix', 'deploy-one'].some((one) => set.get(one) === true);
    if (set.has(way) && !fits) throw new Error(`--${way} goes with ${WITH_BOOTS}`);
  }
  const ofLiars = ['only', 'unchecked'].find((one) => set.has(one));
  if (ofLiars !== undefined && !chosen.includes('liars')) {
    throw new Error(`--${ofLiars} goes with --liars`);
  }
  if (images.length > 1 || (images.length > 0 && !chosen.includes('deploy-one'))) {
    throw new Error('one of --rebuild, --netboot, --silent, --shutdown goes with --deploy-one');
  }
}

function parseOptions(args: readonly string[]): Options {
  const flags = Object.fromEntries(names.map((name) => [name, { type: 'boolean' }] as const));
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      ...flags,
      'verdict-off': { type: 'boolean' },
      rebuild: { type: 'boolean' },
      netboot: { type: 'boolean' },
      silent: { type: 'boolean' },
      shutdown: { type: 'boolean' },
      keep: { type: 'string' },
      firmware: { type: 'string' },
      dhcp: { type: 'string' },
      only: { type: 'string' },
      unchecked: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const set = new Map<string, unknown>(Object.entries(values));
  const keep = set.get('keep');
  const all = positionals.length === 1 && positionals[0] === 'all' && set.get('kill') === true;
  if (positionals.length > 0 && !all)
    throw new Error(`"${positionals.join(' ')}" is not understood`);
  const chosen = names.filter((name) => set.get(name) === true);
  const images = oneImages.filter((image) => set.get(image) === true);
  checkTogether(chosen, images, set);
  return {
    chosen,
    boots: bootsOf(set),
    image: images[0] ?? 'disk',
    liars: chosenOf('only', liarNames, set.get('only') ?? liarNames.join(',')),
    checked: set.get('unchecked') !== true,
    verdict: set.get('verdict-off') === true ? 'off' : 'on',
    kills: all ? 'all' : 'one',
    ...(typeof keep === 'string' ? { keep } : {}),
  };
}

/** Of the matrix all ways to boot, else the usual one; the options name others. */
function bootsOf(set: ReadonlyMap<string, unknown>) {
  const usual = set.get('matrix') === true ? undefined : USUAL_BOOT;
  const mode = set.get('dhcp') ?? usual?.dhcp ?? dhcpModes.join(',');
  const modes = chosenOf('dhcp', dhcpModes, mode);
  const named = set.get('firmware') ?? usual?.firmware ?? firmwares.join(',');
  const all = chosenOf('firmware', firmwares, named);
  const boots = all.flatMap((firmware) => modes.map((dhcp) => ({ firmware, dhcp })));
  const ways = boots.filter(isBootWay);
  if (set.get('deploy-one') === true && ways.some(isArm64)) {
    throw new Error('--deploy-one has no image for uefi-arm64 and u-boot');
  }
  if (ways.length === 0) {
    const text = 'uefi-http6 goes with --dhcp off, u-boot with --dhcp reservation';
    throw new Error(`${text}, and with nothing else`);
  }
  return ways;
}

function isArm64({ firmware }: BootWay): boolean {
  return architectureOf(firmware) === 'arm64';
}

/** What `--option a,b` names, each once. */
function chosenOf<T extends string>(option: string, all: readonly T[], list: unknown): T[] {
  const words = String(list).split(',');
  const unknown = words.find((word) => !all.some((one) => one === word));
  if (unknown !== undefined) {
    throw new Error(`--${option}: "${unknown}" is none of ${all.join(', ')}`);
  }
  return all.filter((one) => words.includes(one));
}

async function main(options: Options): Promise<number> {
  const findings = createFindings();
  for (const [title, scenario] of options.chosen.flatMap((name) => [
    ...scenariosOf(name, options),
  ])) {
    findings.say(`--- ${title}`);
    try {
      await runScenario(scenario, findings, options.keep);
    } catch (error) {
      findings.check(title, false, error instanceof Error ? (error.stack ?? '') : String(error));
    }
  }
  if (options.chosen.includes('matrix')) printMatrix(findings);
  findings.say(`${findings.passed()} passed, ${findings.failed()} failed, 0 skipped`);
  return findings.failed() === 0 ? 0 : 1;
}

function readOptions(args: readonly string[]): Options | undefined {
  try {
    const options = parseOptions(args);
    if (options.chosen.length > 0) return options;
  } catch (error) {
    process.stderr.write(`${errorText(error)}\n`);
  }
  process.stderr.write(usage);
  return undefined;
}

const options = readOptions(process.argv.slice(2));
process.exitCode = options === undefined ? 2 : await main(options);
