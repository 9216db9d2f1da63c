/**
 * What became of machines that were deployed, judged by their own logs: what their disks were told,
 * when their BMCs switched them, what they wrote to their serial ports.
 */
import { closeSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LabImage } from '../image/build.ts';
import { tryProgram } from '../processes.ts';
import type { LabMachine } from '../qemu.ts';
import type { LabDisk } from '../qemu-disks.ts';
import type { Findings, Site } from '../site.ts';
import { firstDifference, firstSectorCameLast, rebuildDisk } from '../written-disk.ts';

const SECTOR_BYTES = 512;
/** A boot sector's own code ends here; what follows is a table. */
const BOOT_CODE_BYTES = 440;
/** Header and entries of a GPT follow the first sector. */
const TABLE_SECTORS = 34;
const MIB = 1024 * 1024;

/** A power-on, as the BMC's hand wrote it down. */
interface PowerOn {
  readonly boot: number;
  readonly device: 'pxe' | 'disk';
}

function powerOns(machine: LabMachine): PowerOn[] {
  return [...chassisLog(machine).matchAll(/^\S+ on (pxe|disk) boot (\d+)$/gm)].map(
    ([, device, boot]) => ({ device: device === 'pxe' ? 'pxe' : 'disk', boot: Number(boot) }),
  );
}

function chassisLog(machine: LabMachine): string {
  return readFileSync(join(machine.folder, 'chassis.log'), 'utf8');
}

/** The machine booted these versions from its disk in this order; each one did as it was told. */
export function checkBoots(
  findings: Findings,
  machine: LabMachine,
  versions: readonly string[],
): void {
  const { name } = machine;
  const said = [...machine.console().matchAll(/lab: (.*)\r?$/gm)].map(([, text]) => text);
  const expected = versions.map((version) => `${version} applied ${name}`);
  findings.check(
    `${name} booted ${versions.join(', then ')} and applied its first-boot data`,
    JSON.stringify(said) === JSON.stringify(expected),
    JSON.stringify(said),
  );
}

/** Each deployment left the image on the disk, byte for byte, before the machine booted it. */
export async function checkWrittenDisks(
  site: Site,
  machine: LabMachine,
  images: readonly LabImage[],
  userData: string,
): Promise<void> {
  const { findings } = site;
  const fromDisk = powerOns(machine).filter(({ device }) => device === 'disk');
  const [disk] = machine.disks;
  if (disk === undefined) throw new Error(`${machine.name} has no disk`);
  const title = `${machine.name} was switched on for its disk once for each image`;
  findings.check(title, fromDisk.length === images.length, `${fromDisk.length}`);
  for (const [n, { boot }] of fromDisk.entries()) {
    const image = images[n];
    if (image !== undefined) await checkWritten({ site, machine, disk }, boot, image, userData);
  }
}

interface Judged {
  readonly site: Site;
  readonly machine: LabMachine;
  readonly disk: LabDisk;
}

async function checkWritten(
  { site, machine, disk }: Judged,
  boot: number,
  image: LabImage,
  userData: string,
): Promise<void> {
  const { findings } = site;
  const label = `${machine.name}, version ${image.version}`;
  const logs = machine.blockLogs(disk).slice(0, boot - 1);
  const rebuilt = join(machine.folder, 'rebuilt.raw');
  rebuildDisk(logs, disk.bytes, rebuilt);
  const tables = [
    { from: BOOT_CODE_BYTES, to: SECTOR_BYTES },
    { from: SECTOR_BYTES, to: TABLE_SECTORS * SECTOR_BYTES },
  ];
  const differs = firstDifference(rebuilt, image.disk.path, image.disk.bytes, tables);
  findings.check(
    `${label}: the disk held the image before it was booted`,
    differs === undefined,
    `it differs at byte ${differs}`,
  );
  const inOrder = firstSectorCameLast(logs.at(-1) ?? '', disk.bytes);
  findings.check(`${label}: the first sector was written last`, inOrder);
  await checkTable(findings, label, rebuilt, { disk, image, userData });
  rmSync(rebuilt);
}

interface Listed {
  readonly start: number;
  readonly size: number;
  readonly name?: string;
}

/** Judged by Debian's tools: the table is sound, the root has grown, the seed is right. */
async function checkTable(
  findings: Findings,
  label: string,
  path: string,
  expected: { readonly disk: LabDisk; readonly image: LabImage; readonly userData: string },
): Promise<void> {
  const { disk, image, userData } = expected;
  const verified = await tryProgram(['sgdisk', '--verify', path], {});
  const isSound = verified.out.includes('No problems found');
  findings.check(`${label}: its table is sound`, isSound, verified.out);
  const dump = await tryProgram(['sfdisk', '--json', path], {});
  const { partitions } = (JSON.parse(dump.out) as { partitiontable: { partitions: Listed[] } })
    .partitiontable;
  const named = (name: string): Listed | undefined => {
    return partitions.find((each) => each.name?.toLowerCase() === name);
  };
  const [root, seed] = [named('root'), named('cidata')];
  const rootBytes = (root?.size ?? 0) * SECTOR_BYTES;
  findings.check(
    `${label}: its last partition has grown with the disk`,
    rootBytes > disk.bytes - image.disk.bytes && rootBytes < disk.bytes,
    `${rootBytes} of ${disk.bytes}`,
  );
  const at = `${path}@@${(seed?.start ?? 0) * SECTOR_BYTES}`;
  const read = await tryProgram(['mtype', '-i', at, '::user-data'], {});
  findings.check(`${label}: the seed holds its user data`, read.out === userData, read.err);
}

/** Nothing of an image that was found to be another one can be booted: it begins with zeros. */
export function checkNotBootable(findings: Findings, machine: LabMachine): void {
  const [disk] = machine.disks;
  const head = Buffer.alloc(MIB);
  const file = openSync(disk?.image ?? '', 'r');
  try {
    readSync(file, head, 0, MIB, 0);
  } finally {
    closeSync(file);
  }
  const isZero = head.every((byte) => byte === 0);
  findings.check(`${machine.name}: what is on its disk cannot be booted`, isZero);
}

/** By the BMCs' own record: from the first deployment on, one at most was off or in the runner. */
export function checkOneOut(
  findings: Findings,
  machines: readonly LabMachine[],
  untilMs: number,
): void {
  const most = mostOut(machines.map(chassisLog), untilMs);
  findings.check('their BMCs saw at most one out at a time', most === 1, `${most}`);
}

/** How many machines were out at once, by the logs of their BMCs' hands, at most until then. */
export function mostOut(chassisLogs: readonly string[], untilMs: number): number {
  const changes = chassisLogs.flatMap((log) => outages(log, untilMs));
  changes.sort((a, b) => a.atMs - b.atMs || a.out - b.out);
  let out = 0;
  let most = 0;
  for (const { out: by } of changes) {
    out += by;
    most = Math.max(most, out);
  }
  return most;
}

/** A machine is in service from its first start from its disk, until it is switched off. */
function outages(log: string, untilMs: number) {
  const changes: { readonly atMs: number; readonly out: 1 | -1 }[] = [];
  let isUp = false;
  let wasUp = false;
  for (const line of log.split('\n')) {
    const atMs = Number(line.split(' ')[0]) * 1_000;
    if (atMs > untilMs) break;
    if (line.includes(' on disk boot ')) {
      if (wasUp && !isUp) changes.push({ atMs, out: -1 });
      isUp = true;
      wasUp = true;
    } else if (line.endsWith(' set power 0') && isUp) {
      changes.push({ atMs, out: 1 });
      isUp = false;
    }
  }
  return changes;
}
