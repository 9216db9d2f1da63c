/**
 * `--deploy-one`: one machine, one image, and the hand on its power button afterwards. The image is
 * on its disk, or booted over the network with the disk left alone; further stories stand beside.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBlockLog, touchedBytes } from '../blocklog.ts';
import { buildNetbootImage, type LabImage, type LabNetbootImage } from '../image/build.ts';
import { SHUTDOWN_FILES, SILENT_FILES } from '../image/recipe.ts';
import { ipmitool } from '../ipmi-sim.ts';
import type { DiskSpec } from '../qemu-disks.ts';
import { createHost, isEnded, powerOff, type Scenario } from '../site.ts';
import { printStages } from '../stages.ts';
import { checkErased, DISK_MIB, USER_DATA } from './deploy.ts';
import { checkWrittenDisks } from './deploy-judge.ts';
import { KEPT_DISK, runRebuild } from './deploy-rebuild.ts';
import { runShutdown } from './deploy-shutdown.ts';
import { runSilent } from './deploy-silent.ts';
import {
  buildDisk,
  checkInService,
  checkStarts,
  entriesStarted,
  HOST,
  provision,
  publish,
  type Story,
  VERSION,
} from './one-host.ts';

/** What becomes of the machine. */
export const oneImages = ['disk', 'rebuild', 'netboot', 'silent', 'shutdown'] as const;
export type OneImage = (typeof oneImages)[number];

/** The scenario. */
export function deployOneScenario(image: OneImage): Scenario {
  const disk: DiskSpec = { name: 'disk0', bus: 'virtio', mebibytes: DISK_MIB, isBlank: true };
  const disks = image === 'rebuild' ? [disk, KEPT_DISK] : [disk];
  return {
    machines: [{ name: HOST, processors: 2, disks }],
    run: async (site) => {
      const [bmc] = site.lab.bmcs;
      if (bmc === undefined) throw new Error('the scenario has one machine');
      await createHost(site, bmc, 'available');
      // While it is cleaned.
      switch (image) {
        case 'disk':
          await runFromDisk(await publish(site, bmc, buildDisk));
          break;
        case 'rebuild':
          await runRebuild(await publish(site, bmc, buildDisk));
          break;
        case 'netboot':
          await runFromNetwork(await publish(site, bmc, (to) => buildNetbootImage(to, VERSION)));
          break;
        case 'shutdown':
          await runShutdown(await publish(site, bmc, (to) => buildDisk(to, SHUTDOWN_FILES)));
          break;
        case 'silent':
          await runSilent(await publish(site, bmc, (to) => buildDisk(to, SILENT_FILES)));
      }
      printStages(site, bmc.machine);
    },
  };
}

/** The image is on the disk, and started from there once more when somebody switches it on. */
async function runFromDisk(story: Story<LabImage>): Promise<void> {
  const { site, bmc, image } = story;
  const { stack, findings, lab } = site;
  const { machine } = bmc;
  const isUefi = lab.boot.firmware !== 'bios';
  const ended = await provision(story, ['--proof-timeout', '10m']);
  findings.check('it was proved', isEnded(ended, 'PROVISION', 'SUCCEEDED'));
  checkInService(story, 'by its proof');
  await checkStarts(story, 1);
  await checkWrittenDisks(site, machine, [image], USER_DATA);
  const shown = await stack.cli(['host', 'get', HOST]);
  const written = /^written disk\W+(.*)$/m.exec(shown)?.[1] ?? '';
  findings.say(`       written disk: ${written}`);
  const [disk] = machine.disks;
  const isNamed = written.startsWith(`${disk?.serial}: ${image.disk.digest}, grown by `);
  findings.check('`host get` names the disk, its content and its growth', isNamed, shown);
  findings.check('and no trouble with it', !/not grown|no boot entry/.test(written), written);
  const starts = (): number => entriesStarted(machine).length;
  // One boot for the inspection and the clean, one to write, and one of the image.
  checkOrders(story, ['pxe', 'pxe', 'default']);
  if (isUefi) findings.check('ordered from its disk, it took the boot entry', starts() === 1);
  await powerOff(site, bmc);
  await ipmitool(lab.network, bmc.address(), ['chassis', 'power', 'on']);
  await checkStarts(story, 2);
  if (isUefi) findings.check('without an order, it took the boot entry', starts() === 2);
  checkInService(story, 'after it was switched on by hand');
}

/** What its BMC was told to boot from, each time read back before it was switched on. */
function checkOrders({ site, bmc }: Story<unknown>, wanted: readonly string[]): void {
  const log = readFileSync(join(bmc.machine.folder, 'chassis.log'), 'utf8');
  const ordered = log.matchAll(/ set boot (\w+)\n(?:\S+ set boot \1\n)*\S+ get boot/g);
  const found = [...ordered].map(([, device]) => device).join(' ');
  site.findings.check('each boot was ordered and read back', found === wanted.join(' '), found);
}

/** The image is in memory alone, and so it is after a reset; the disk is not touched. */
async function runFromNetwork(story: Story<LabNetbootImage>): Promise<void> {
  const { site, bmc } = story;
  const { stack, findings, lab } = site;
  const { machine } = bmc;
  const bootsBefore = machine.boots();
  const ended = await provision(story, ['--netboot', '--proof-timeout', '10m']);
  findings.check('it was proved', isEnded(ended, 'PROVISION', 'SUCCEEDED'));
  checkInService(story, 'by its proof');
  await checkStarts(story, 1);
  const shown = await stack.cli(['host', 'get', HOST]);
  findings.check('`host get` names no written disk', /^written disk +-$/m.test(shown), shown);
  await ipmitool(lab.network, bmc.address(), ['chassis', 'power', 'reset']);
  await checkStarts(story, 2);
  checkInService(story, 'after a reset by hand');
  const boots = machine.boots() - bootsBefore;
  findings.check('it was switched on twice, the runner never', boots === 2, `${boots}`);
  await powerOff(site, bmc);
  for (const disk of machine.disks) {
    const logs = machine.blockLogs(disk).slice(bootsBefore);
    const entries = logs.flatMap((log) => readBlockLog(log, disk.bytes));
    const touched = touchedBytes(entries, ['write', 'discard'], disk.bytes);
    findings.check('by its own log nothing was done to its disk', touched === 0, `${touched}`);
  }
  checkErased(findings, machine);
}
