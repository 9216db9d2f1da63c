/**
 * `--packages`: the Debian packages in a real systemd. Installed, enrolled by the two commands of
 * the README, a machine cleaned through them; the agent stopped, the packages upgraded with a clean
 * under way, restored from a backup, taken back to the older version, and purged.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Built, buildPackages } from '@rackwright/debian';
import type { LabBmc } from '../lab/ipmi-sim.ts';
import type { Lab } from '../lab/lab.ts';
import { LAB_ADDRESS } from '../lab/netns.ts';
import { tryProgram, until } from '../lab/processes.ts';
import { usualDisks } from '../lab/qemu-disks.ts';
import { checkCertificates, checkDisks } from '../lab/scenarios/check.ts';
import { createHost, powerOff, RUN_LIMIT_MS, type Scenario, type Site } from '../lab/site.ts';
import { limitWrites, limitWritesOnceOn } from '../lab/slow-disks.ts';
import { commandLine, kernelArguments, type Program, RACK, type Stack } from '../lab/stack.ts';
import { type Container, missingForContainers, startContainer } from './container.ts';
import { checkConfigurations, checkPauses } from './failed-starts.ts';
import { added, footprint } from './files-of.ts';
import { Planted } from './planted.ts';
import {
  bootPortsOn,
  checkSecondNetwork,
  INTERFACES,
  networksLine,
  openBootPorts,
} from './second-network.ts';
import {
  OPERATOR,
  property,
  SERVER,
  SERVICES,
  type Service,
  START_WAIT_MS,
  STATE,
  untilActive,
} from './services.ts';
import { backUp, checkYesterday, OWN_FILES, useCredential } from './yesterday.ts';

const ROOT = join(import.meta.dirname, '../..');
/** It reads 160 MB beside other laboratories. */
const LINTIAN_WAIT_MS = 1_200_000;
/** Both of this tree: what packages do is tried, not another form of records. */
const OLDER = '0.1.0~lab1';
const NEWER = '0.1.0~lab2';
const PACKAGES = ['agent', 'controlplane', 'cli', 'ramdisk'].map((name) => `rackwright-${name}`);
/** Twice the watchdog's time. */
const WATCHDOG_WAIT_MS = 90_000;
/** A disk of 64 MiB takes nine minutes. */
const SLOW_BYTES_PER_S = 128 * 1024;

/** What the steps share. */
interface Installed {
  readonly container: Container;
  readonly before: ReadonlySet<string>;
  readonly older: readonly string[];
  readonly newer: readonly string[];
  readonly planted: Planted;
}

/** The scenario. */
export function packagesScenario(): Scenario {
  let installed: Installed | undefined;
  return {
    machines: [{ name: 'h1', disks: usualDisks() }],
    startStack: async (lab) => {
      installed = await install(lab);
      return await stackOf(lab, installed.container);
    },
    run: async (site) => {
      if (installed === undefined) throw new Error('the packages are installed by startStack');
      await checkAll(site, installed);
    },
  };
}

async function checkAll(site: Site, installed: Installed): Promise<void> {
  const { container, planted } = installed;
  const [bmc] = site.lab.bmcs;
  if (bmc === undefined) throw new Error('the scenario has one machine');
  await checkLintian(site);
  await checkPrivileges(site, container);
  await checkUnboundSocket(site, container);
  await checkWatchdog(site, container);
  await checkSecondNetwork(site, container);
  await checkUpgrade(site, bmc, installed);
  await checkYesterday(site, bmc, container);
  await checkRollback(site, installed);
  await planted.check(site);
  await checkConfigurations(site, container);
  await checkPauses(site, container);
  await checkPurge(site, installed);
}

async function install(lab: Lab): Promise<Installed> {
  const missing = missingForContainers();
  if (missing.length > 0) throw new Error(`not on this machine: ${missing.join(', ')}`);
  const built = [await build(lab, OLDER, true), await build(lab, NEWER, false)] as const;
  const container = await startContainer(lab);
  const before = footprint(container.root);
  const [older, newer] = [await handOver(container, built[0]), await handOver(container, built[1])];
  await container.run(['dpkg', '-i', ...older]);
  const key = await configure(container);
  await container.run(['systemctl', 'restart', 'rackwright-controlplane']);
  const planted = await enrol(container, key);
  lab.undo.add('end the search of processes', () => planted.stop());
  return { container, before, older, newer, planted };
}

async function stackOf(lab: Lab, container: Container): Promise<Stack> {
  return {
    controlPlane: programOf(container, 'rackwright-controlplane'),
    agent: programOf(container, 'rackwright-agent'),
    ...commandLine(lab, join(container.root, STATE, 'identity')),
  };
}

async function build(lab: Lab, version: string, ramdisk: boolean): Promise<Built[]> {
  const packages = buildPackages({
    root: ROOT,
    version,
    programs: ramdisk ? ['agent', 'controlplane', 'cli'] : ['agent', 'controlplane'],
    architectures: ['amd64'],
    ramdisk,
    outputFolder: join(lab.folder, 'packages'),
    hurried: true,
    now: Date.now(),
  });
  const built: Built[] = [];
  for await (const one of packages) built.push(one);
  return built;
}

/** Copies packages to where the container sees them; answers their paths there. */
async function handOver(container: Container, built: readonly Built[]): Promise<string[]> {
  await mkdir(join(container.root, 'root/packages'), { recursive: true });
  const paths = built.map(({ path }) => `/root/packages/${basename(path)}`);
  for (const { path } of built) {
    await copyFile(path, join(container.root, 'root/packages', basename(path)));
  }
  return paths;
}

/**
 * As a person would: an address each, the interface that hosts boot from, and the secrets key out
 * of the state folder. Answers that key.
 */
async function configure(container: Container): Promise<Buffer> {
  edit(container, 'controlplane', /^#names:.*$/m, `names: [${LAB_ADDRESS.agent}]`);
  edit(container, 'agent', /^#interfaces:.*$/m, networksLine);
  const text = `runner: {kernelArguments: [${kernelArguments('amd64').join(', ')}]}`;
  edit(container, 'agent', /^#runner:$/m, text);
  for (const name of INTERFACES) {
    await container.run(['systemctl', 'enable', `rackwright-agent@${name}.socket`]);
  }
  return await useCredential(container);
}

function edit(container: Container, name: string, line: RegExp, instead: string): void {
  const file = join(container.root, `etc/rackwright/${name}.yaml`);
  const text = readFileSync(file, 'utf8');
  if (!line.test(text)) throw new Error(`${file} has no line ${line}`);
  writeFileSync(file, text.replace(line, instead));
}

/** By the two commands that the README names, once there is a rack; nobody sees the secrets. */
async function enrol(container: Container, key: Buffer): Promise<Planted> {
  await container.run(['rackwright', 'rack', 'create', RACK], OPERATOR);
  const token = await container.run(['rackwright', 'rack', 'join-token', RACK], OPERATOR);
  const admin = readFileSync(container.path(`${STATE}/identity/admin.token`), 'utf8').trim();
  const join = token.trim().split('.').at(-1) ?? '';
  const planted = new Planted(container, { key, admin, join });
  // It is there once only, and waits for the token until it has been looked at.
  await container.run(['rackwright-agent', 'join', SERVER, '-'], {}, async () => {
    await planted.hasSeen('agent.mjs join');
    return token;
  });
  await untilActive(container, 'rackwright-agent');
  return planted;
}

function programOf(container: Container, service: Service): Program {
  return {
    start: async () => {
      await container.run(['systemctl', 'start', service]);
    },
    process: () => undefined,
    starts: () => 1,
    reviveIfDead: () => {}, // systemd does
  };
}

/** What Debian's own judge says of the packages. */
async function checkLintian({ lab, findings }: Site): Promise<void> {
  const folder = join(lab.folder, 'packages');
  const debs = readdirSync(folder).filter((name) => name.includes(OLDER));
  const args = ['--allow-root', '--fail-on', 'error', '--display-level', 'error'];
  const { code, out, err } = await tryProgram(
    ['lintian', ...args, ...debs.map((name) => join(folder, name))],
    { timeoutMs: LINTIAN_WAIT_MS },
  );
  findings.check('lintian finds no error in the packages', code === 0, `${out}${err}`);
}

/** A service's main process has a user of its own, no capability and no core. */
async function checkPrivileges({ findings }: Site, container: Container): Promise<void> {
  for (const service of SERVICES) {
    const pid = await property(container, service, 'MainPID');
    const status = await container.run(['cat', `/proc/${pid}/status`]);
    const field = (name: string): string =>
      new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
    const limits = await container.run(['cat', `/proc/${pid}/limits`]);
    findings.check(`${service} is not root`, !field('Uid').startsWith('0'), field('Uid'));
    for (const set of ['CapEff', 'CapPrm', 'CapBnd', 'CapAmb']) {
      findings.check(`${service}: ${set} is empty`, /^0+$/.test(field(set)), field(set));
    }
    findings.check(`${service} can gain no privilege`, field('NoNewPrivs') === '1');
    findings.check(`${service} leaves no core`, /^Max core file size +0 +0 /m.test(limits), limits);
  }
  const open = await openBootPorts(container);
  const isFirst = open === bootPortsOn(INTERFACES[0]);
  findings.check(`boot ports are open on ${INTERFACES[0]} only`, isFirst, open);
}

/** An instance that nobody has enabled, and that is bound to no interface thus, opens nothing. */
async function checkUnboundSocket({ findings }: Site, container: Container): Promise<void> {
  const unit = 'rackwright-agent@lo.socket';
  await container.run(['systemctl', 'stop', 'rackwright-agent']);
  const { code, err } = await container.attempt(['systemctl', 'start', unit]);
  findings.check('a socket without an interface does not start', code !== 0, err);
  const result = await property(container, unit, 'Result');
  findings.check('it is the opening that failed', result === 'resources', result);
  const open = await openBootPorts(container);
  findings.check('no boot port is open without an interface', open === '', open);
  await container.run(['systemctl', 'reset-failed', unit]);
  await container.run(['systemctl', 'start', 'rackwright-agent']);
  await untilActive(container, 'rackwright-agent');
}

/** A stopped agent is taken away by the watchdog and comes back. */
async function checkWatchdog({ findings }: Site, container: Container): Promise<void> {
  const unit = 'rackwright-agent';
  const before = await property(container, unit, 'NRestarts');
  findings.check('the agent has never been restarted', before === '0', before);
  const pid = await property(container, unit, 'MainPID');
  await container.run(['systemctl', 'kill', '--kill-whom=main', '--signal=STOP', unit]);
  await until('the restart of the stopped agent', WATCHDOG_WAIT_MS, async () => {
    return (await property(container, unit, 'NRestarts')) === '1';
  });
  await untilActive(container, unit);
  const next = await property(container, unit, 'MainPID');
  findings.check('the watchdog has restarted the stopped agent', pid !== next, `${pid} ${next}`);
  const journal = await container.run(['journalctl', '--no-pager', '--unit', unit]);
  findings.check(
    'it was the watchdog',
    journal.includes('Watchdog timeout'),
    journal.slice(-2_000),
  );
}

/** The packages are upgraded while a clean is under way; it is that same clean that succeeds. */
async function checkUpgrade(
  site: Site,
  bmc: LabBmc,
  { container, newer }: Installed,
): Promise<void> {
  const { watch, findings, stack } = site;
  await createHost(site, bmc, 'available');
  const cleaning = await watch.waitFor('h1', 'h1 is being cleaned', RUN_LIMIT_MS, ({ status }) => {
    return status.run?.kind === 'RUN_KIND_CLEAN' && status.run.phase !== 'RUN_PHASE_ENDED';
  });
  // However long the upgrade takes here, the clean takes longer.
  await limitWritesOnceOn(bmc.machine, SLOW_BYTES_PER_S, RUN_LIMIT_MS);
  await container.run(['dpkg', '-i', ...newer]);
  await backUp(site, container);
  const upgraded = watch.latest('h1')?.status.run;
  findings.check(
    'the clean was under way when the packages had been upgraded, and a backup was made',
    upgraded?.kind === 'RUN_KIND_CLEAN' && upgraded.phase !== 'RUN_PHASE_ENDED',
    JSON.stringify(upgraded),
  );
  await limitWrites(bmc.machine, 0);
  const isCleaned = ({ status }: { readonly status: { readonly state: string } }): boolean =>
    status.state === 'HOST_STATE_AVAILABLE';
  const after = await watch.waitFor('h1', 'h1 is available', RUN_LIMIT_MS, isCleaned);
  findings.check(
    'the clean that was under way is the one that succeeded',
    after.status.run?.number === cleaning.status.run?.number &&
      after.status.run?.outcome === 'RUN_OUTCOME_SUCCEEDED',
    JSON.stringify([cleaning.status.run, after.status.run]),
  );
  const rack = JSON.parse(await stack.cli(['rack', 'get', RACK, '-o', 'json'])) as object;
  findings.check('the agent is the newer one', JSON.stringify(rack).includes(NEWER));
  await powerOff(site, bmc);
  checkDisks(site, bmc.machine);
  await checkCertificates(site, bmc.machine);
}

/** The older version runs on the newer one's state. */
async function checkRollback(site: Site, { container, older }: Installed): Promise<void> {
  await container.run(['dpkg', '-i', ...older]);
  for (const service of SERVICES) await untilActive(container, service);
  await until('the older agent’s session', START_WAIT_MS, async () => {
    const { out } = await site.stack.tryCli(['rack', 'get', RACK, '-o', 'json']);
    return out.includes(OLDER);
  });
  const host = await site.stack.cli(['host', 'get', 'h1', '-o', 'json']);
  site.findings.check('the older version knows the host', host.includes('HOST_STATE_EXTERNAL'));
}

/** Removing keeps the state; purging leaves nothing. */
async function checkPurge({ findings }: Site, installedParts: Installed): Promise<void> {
  const { container, before } = installedParts;
  await container.run(['dpkg', '--remove', ...PACKAGES]);
  const kept = footprint(container.root);
  findings.check('removing the packages keeps the state', kept.has('var/lib/rackwright/state.db'));
  for (const service of SERVICES) {
    const { out } = await container.attempt(['systemctl', 'is-active', service]);
    findings.check(`${service} is stopped by its removal`, out.trim() === 'inactive', out);
  }
  await container.run(['dpkg', '--purge', ...PACKAGES]);
  await container.run(['rm', '-r', ...OWN_FILES]);
  // It kept the folder for what a person had put there, and for that alone.
  await container.run(['rmdir', '/etc/rackwright']);
  const left = added(before, footprint(container.root));
  findings.check('purging the packages leaves nothing', left.length === 0, left.join('\n'));
  const listed = await container.run([
    ...['systemctl', 'list-units', '--all', '--no-legend', '--plain', 'rackwright*'],
  ]);
  // What systemd still knows by name, without a file or a process, is its memory of a stop.
  const units = listed
    .split('\n')
    .filter((line) => line !== '' && !/ not-found +inactive /.test(line));
  findings.check('no unit is left', units.length === 0, units.join('\n'));
}
