/**
 * `--deploy-one --rebuild`: a machine with two disks. It runs an image, is looked at in rescue, and
 * gets the image anew, from a qcow2 file, with one disk kept.
 */
import { readBlockLog, touchedBytes } from '../blocklog.ts';
import { isUntouched, writePattern } from '../disk-image.ts';
import { asQcow2, type LabImage } from '../image/build.ts';
import type { LabMachine } from '../qemu.ts';
import type { LabDisk } from '../qemu-disks.ts';
import { hasEnded, isEnded, powerOff, RUN_LIMIT_MS } from '../site.ts';
import { TAG, USER_DATA } from './deploy.ts';
import { checkWrittenDisks } from './deploy-judge.ts';
import {
  checkInService,
  checkStarts,
  entriesStarted,
  HOST,
  provision,
  type Story,
} from './one-host.ts';

/** What people have put there stays. */
export const KEPT_DISK = { name: 'disk1', bus: 'nvme', mebibytes: 64, isBlank: true } as const;

/** The story of the machine. */
export async function runRebuild(story: Story<LabImage>): Promise<void> {
  const { site, bmc, image } = story;
  const { findings } = site;
  const { machine } = bmc;
  const [, kept] = machine.disks;
  if (kept === undefined) throw new Error('the machine has two disks');
  const ended = await provision(story, ['--keep-disk', kept.serial, '--proof-timeout', '10m']);
  findings.check('it was proved', isEnded(ended, 'PROVISION', 'SUCCEEDED'));
  checkInService(story, 'by its proof');
  await checkStarts(story, 1);
  // As if the system had written to it.
  await powerOff(site, bmc);
  writePattern(kept.image, kept.patternName, kept.bytes);
  const bootsBefore = machine.boots();
  await rescue(story);
  await rebuild(story, kept);
  await powerOff(site, bmc);
  const logs = machine.blockLogs(kept).slice(bootsBefore);
  const touched = logs.map((log) => touchedOf(log, kept));
  const isLeft = touched.every((bytes) => bytes === 0);
  findings.check('by its own log nothing was done to the kept disk', isLeft, touched.join(' '));
  const isSame = isUntouched(kept.image, kept.patternName);
  findings.check('the kept disk holds what it held, byte for byte', isSame);
  await checkWrittenDisks(site, machine, [image, image], USER_DATA);
  if (site.lab.boot.firmware === 'bios') return;
  const entries = entriesStarted(machine);
  const isReused = entries.length === 2 && new Set(entries).size === 1;
  findings.check('its boot entry was used again', isReused, entries.join(' '));
}

function touchedOf(log: string, { bytes }: LabDisk): number {
  return touchedBytes(readBlockLog(log, bytes), ['write', 'discard'], bytes);
}

/** The runner comes up, and does nothing to any disk. */
async function rescue({ site, bmc }: Story<LabImage>): Promise<void> {
  const { stack, watch, findings } = site;
  const { machine } = bmc;
  const [bootsBefore, runnersBefore] = [machine.boots(), runnersOf(machine)];
  await stack.cli(['host', 'rescue', HOST, '--reason', 'somebody looks at it']);
  const ended = await watch.waitFor(HOST, 'the end of the rescue', RUN_LIMIT_MS, (host) => {
    return hasEnded(host, 'RESCUE');
  });
  findings.check('the rescue has the runner', isEnded(ended, 'RESCUE', 'SUCCEEDED'));
  const isIn = ended.status.state === 'HOST_STATE_PROVISIONED';
  findings.check('a host in rescue stays provisioned', isIn, ended.status.state);
  findings.check('it was switched on once for it', machine.boots() === bootsBefore + 1);
  findings.check('its console shows the runner', runnersOf(machine) === runnersBefore + 1);
  const touched = machine.disks.map((disk) => {
    return touchedOf(machine.blockLogs(disk).at(-1) ?? '', disk);
  });
  const isLeft = touched.every((bytes) => bytes === 0);
  findings.check('by their own logs nothing was done to its disks', isLeft, touched.join(' '));
}

function runnersOf(machine: LabMachine): number {
  return [...machine.console().matchAll(/\[rackwright [\d.]+\] runner started/g)].length;
}

/** The same content comes from a file in another form. */
async function rebuild(story: Story<LabImage>, kept: LabDisk): Promise<void> {
  const { site, image, registry } = story;
  const { stack, watch, findings } = site;
  const qcow2 = await asQcow2(image);
  const reference = `${registry.repository}@${await registry.push(qcow2, TAG)}`;
  await stack.cli(['host', 'claim', HOST, '--reason', 'it is rebuilt']);
  await stack.cli(['host', 'reimage', HOST, reference, '--yes']);
  const ended = await watch.waitFor(HOST, 'the end of the reimage', RUN_LIMIT_MS, (host) => {
    return hasEnded(host, 'REIMAGE');
  });
  findings.check('it was proved again', isEnded(ended, 'REIMAGE', 'SUCCEEDED'));
  checkInService({ ...story, reference }, 'with the image from the qcow2 file');
  await checkStarts(story, 2);
  const shown = JSON.parse(await stack.cli(['host', 'get', HOST, '-o', 'json'])) as {
    readonly status?: { readonly deploy?: { readonly keepDisks?: readonly string[] } };
  };
  const { keepDisks = [] } = shown.status?.deploy ?? {};
  const keeps = keepDisks.join(' ') === kept.serial;
  findings.check('without a word it is deployed as before, the disk kept', keeps, `${keepDisks}`);
}
