/**
 * `--liars`: disks that hide, lie, and are swapped, in machines with real firmware. Prints a table:
 * the lie, what caught it, the final state. Judged by the disks' files.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostView } from '../../host-watch.ts';
import type { LabBmc } from '../../ipmi-sim.ts';
import { until } from '../../processes.ts';
import type { LabMachine } from '../../qemu.ts';
import { type LabDisk, plugCommands } from '../../qemu-disks.ts';
import { pullDevice, tellQemu } from '../../qmp-command.ts';
import {
  createHost,
  hasEnded,
  isEnded,
  powerOff,
  RUN_LIMIT_MS,
  type Scenario,
  type Site,
} from '../../site.ts';
import {
  byFixtures,
  type LiarDisk,
  type LiarMachine,
  type LiarName,
  liarMachines,
  type Swap,
} from './cases.ts';
import { readClaims } from './claims.ts';
import { isGood, type Judgement, judgeDisk } from './judge.ts';
import { type ServedDisk, type Servers, serveDisks } from './serve.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const HOST = 'h1';
/** From the first power-on: three boots of a machine with many disks. */
const CLEAN_LIMIT_MS = 2 * RUN_LIMIT_MS;
/** Each write to a disk of a machine with swaps; long enough to pull others meanwhile. */
const SLOW_MS = 400;

interface Row {
  readonly machine: string;
  readonly disk: LiarDisk;
  readonly judgement: Judgement;
  readonly state: string;
  /** Of the whole machine. */
  readonly seconds: number;
}

/** All machines of liars. */
export const liarNames = Object.keys(liarMachines) as readonly LiarName[];

/**
 * The scenarios of these machines; the last one prints the table. Not `checked`: each without the
 * check that is to catch its lies, so that they must get through.
 */
export function liarScenarios(
  names: readonly LiarName[],
  checked: boolean,
): ReadonlyMap<string, Scenario> {
  const rows: Row[] = [];
  return new Map(
    names.map((name) => {
      const machine: LiarMachine = liarMachines[name];
      const run = async (site: Site): Promise<void> => {
        rows.push(...(await tryMachine(site, name, machine)));
        if (name === names.at(-1)) printTable(site, rows);
      };
      const scenario = {
        machines: [{ name: HOST, disks: machine.disks }],
        kernelArguments: checked ? [] : [`rackwright.lab.without=${checkOf(name, machine)}`],
        run,
      };
      return [`liars, ${name}`, scenario];
    }),
  );
}

function checkOf(name: string, { check }: LiarMachine): string {
  if (check === undefined) throw new Error(`no switch takes away what catches "${name}"`);
  return check;
}

async function tryMachine(site: Site, name: string, spec: LiarMachine): Promise<Row[]> {
  const begunMs = performance.now();
  const [bmc] = site.lab.bmcs;
  if (bmc === undefined) throw new Error('the scenario has one machine');
  const { machine } = bmc;
  const disks = machine.disks.map((disk): ServedDisk => {
    const own = spec.disks.find((one) => one.name === disk.name);
    return { ...disk, says: own?.says ?? '', ...own, serial: disk.serial };
  });
  const servers = await serveDisks(site.lab, disks);
  if (spec.swaps !== undefined) for (const server of servers.nbd.values()) server.slowDown(SLOW_MS);
  await cleanAtOnce(site, bmc, spec.policy);
  const cleaned = site.watch.waitFor(HOST, 'the end of the clean', CLEAN_LIMIT_MS, (host) =>
    hasEnded(host, 'CLEAN'),
  );
  const swapped = swapDisks(site, machine, disks, servers, spec.swaps ?? []);
  const [ended] = await Promise.all([cleaned, swapped]);
  site.findings.say(`the clean: ${ended.status.run?.outcome}, ${ended.status.state}`);
  await stopWhereItIs(site, ended);
  if (spec.bootsAgain === true && isAvailable(ended)) {
    await powerOff(site, bmc);
    await sleep(spec.restMs ?? 0);
    await bootRunnerAgain(site);
  }
  const claims = await readClaims(site, HOST);
  await powerOff(site, bmc);
  site.findings.say(claims.text);
  const state = site.watch.latest(HOST)?.status.state.replace('HOST_STATE_', '') ?? '';
  const seconds = Math.round((performance.now() - begunMs) / 1_000);
  return disks.map((disk) => {
    const judgement = judgeDisk(disk, servers.lies(disk.name), claims);
    const { ending, leftBytes } = judgement;
    const text = `${ending}, ${leftBytes} bytes of its pattern are left`;
    site.findings.check(`${disk.name}: ${disk.says}`, isGood(ending), text);
    return { machine: name, disk, judgement, state, seconds };
  });
}

/** Goes without the inspection before the clean, which would boot the machine once more. */
async function cleanAtOnce(site: Site, bmc: LabBmc, policy?: readonly string[]): Promise<void> {
  await createHost(site, bmc, 'manageable', policy);
  await site.watch.waitFor(HOST, 'the end of the verification', RUN_LIMIT_MS, (host) =>
    isEnded(host, 'VERIFY', 'SUCCEEDED'),
  );
  await site.stack.cli(['host', 'clean', HOST, '--yes']);
  await site.stack.cli(['host', 'update', HOST, '--goal', 'available']);
}

/** A host whose clean has failed is not to be cleaned again while we look. */
async function stopWhereItIs(site: Site, ended: HostView): Promise<void> {
  if (isAvailable(ended)) return;
  await site.stack.cli(['host', 'update', HOST, '--goal', 'manageable']);
}

function isAvailable(host: HostView): boolean {
  return host.status.run?.outcome === 'RUN_OUTCOME_SUCCEEDED';
}

/** Once something is being written: pulls what is to be pulled and plugs the foreign disks. */
async function swapDisks(
  site: Site,
  machine: LabMachine,
  disks: readonly LabDisk[],
  servers: Servers,
  swaps: readonly Swap[],
): Promise<void> {
  if (swaps.length === 0) return;
  const written = (name: string): number => servers.nbd.get(name)?.changedBytes() ?? 0;
  const begun = swaps.filter(({ when }) => when === 'writing');
  await until('the first write', CLEAN_LIMIT_MS, () =>
    begun.every((one) => written(one.planned) > 0),
  );
  for (const { planned, foreign, when } of swaps) {
    if (when === 'queued') {
      const bytes = written(planned);
      site.findings.check(`${planned} waits when it is pulled`, bytes === 0, `${bytes} bytes`);
    }
    await pullDevice(machine, `${planned}-device`);
    const disk = disks.find(({ name }) => name === foreign);
    if (disk === undefined) throw new Error(`there is no spare ${foreign}`);
    await tellQemu(machine, plugCommands(disk));
    site.findings.say(`pulled ${planned}, plugged ${foreign}`);
  }
  await sleep(SLOW_MS * 4);
  for (const server of servers.nbd.values()) server.slowDown(0);
}

/** The next boot of the runner, whatever it is for. */
async function bootRunnerAgain(site: Site): Promise<void> {
  await site.stack.cli(['host', 'inspect', HOST]);
  const ended = await site.watch.waitFor(HOST, 'the end of the inspection', RUN_LIMIT_MS, (host) =>
    hasEnded(host, 'INSPECT'),
  );
  site.findings.say(`the next boot: ${ended.status.run?.outcome}, ${ended.status.state}`);
}

function printTable(site: Site, rows: readonly Row[]): void {
  const line = (cells: readonly string[]): void => site.findings.say(`| ${cells.join(' | ')} |`);
  const columns = ['machine', 'bus', 'lie', 'tried', 'caught by', 'final state', 'left', 'ending'];
  line([...columns, 'machine took']);
  line([...columns, ''].map(() => '---'));
  for (const { machine, disk, judgement, state, seconds } of rows) {
    const { ending, leftBytes, tried, caughtBy } = judgement;
    const found = [caughtBy, state.toLowerCase(), `${leftBytes}`, ending, `${seconds} s`];
    line([machine, disk.bus, disk.says, tried, ...found]);
  }
  for (const { bus, says, test } of byFixtures) {
    line(['—', bus, says, 'by fixtures', test, '', '', '', '']);
    site.findings.check(`${test} is there`, existsSync(join(ROOT, test)));
  }
}
