/** Folders of software machines: their identity, their BMC's, and disks filled with a pattern. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface MachinePlan {
  readonly name: string;
  /** The BMC's address: one of 127.0.0.0/8. */
  readonly bmcAddress: string;
  readonly mac: string;
  readonly uuid: string;
  readonly serial: string;
  readonly disks: readonly DiskPlan[];
  readonly extraArguments?: string;
}

export interface DiskPlan {
  readonly name: string;
  readonly serial: string;
  readonly kind: 'discard' | 'overwrite' | 'format';
  readonly faults?: readonly object[];
}

export interface MachineFolder {
  readonly plan: MachinePlan;
  readonly folder: string;
}

export const bmcPassword = 'correct horse';
const diskBytes = 2 * 1024 * 1024;
const blockBytes = 4096;

/** Makes the machine's folder below `root`, which is the folder that the BMC stand-in gets. */
export function makeMachine(root: string, plan: MachinePlan, bootUrl: string): MachineFolder {
  const folder = join(root, plan.bmcAddress);
  mkdirSync(join(folder, 'disks'), { recursive: true });
  const { mac, uuid, serial } = plan;
  const machine = { mac, uuid, serial, bootUrl, extraArguments: plan.extraArguments ?? '' };
  writeFileSync(join(folder, 'machine.json'), JSON.stringify(machine));
  writeFileSync(join(folder, 'guid'), `${uuid.replaceAll(/../g, ' $&')}\n`);
  writeFileSync(join(folder, 'serial'), serial);
  writeFileSync(join(folder, 'password'), bmcPassword);
  for (const disk of plan.disks) makeDisk(join(folder, 'disks'), disk);
  return { plan, folder };
}

function makeDisk(folder: string, { name, serial, kind, faults = [] }: DiskPlan): void {
  const format = kind === 'format';
  const region = format ? `${name}n1` : name;
  const description = {
    transport: format ? 'nvme' : 'virtio',
    serial,
    discardSupported: kind === 'discard',
    regions: [{ name: region }],
    ...(format ? { nvme: { formatSupported: true } } : {}),
    faults,
  };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(description));
  const image = Buffer.alloc(diskBytes);
  for (let offset = 0; offset < diskBytes; offset += blockBytes) {
    pattern(serial, offset).copy(image, offset);
  }
  writeFileSync(join(folder, `${region}.img`), image);
}

/** What stands in a block before anybody cleans: different in every block of every disk. */
function pattern(serial: string, offset: number): Buffer {
  const digest = createHash('sha256').update(`pattern ${serial} ${offset}`).digest();
  return Buffer.alloc(blockBytes, digest);
}

/** Whether any block of the disk still holds its pattern, as read from outside. */
export function holdsPattern({ folder }: MachineFolder, { name, serial, kind }: DiskPlan): boolean {
  const region = kind === 'format' ? `${name}n1` : name;
  const image = readFileSync(join(folder, 'disks', `${region}.img`));
  for (let offset = 0; offset < image.length; offset += blockBytes) {
    if (image.subarray(offset, offset + blockBytes).equals(pattern(serial, offset))) return true;
  }
  return false;
}

/** One line of a disk's own log. */
export interface DiskAct {
  readonly phase: 'begin' | 'end';
  readonly kind: 'open' | 'write' | 'zero' | 'discard' | 'format' | 'flush';
  readonly region: string;
  readonly offset: number;
  readonly length: number;
  readonly outcome?: string;
}

export function diskLog({ folder }: MachineFolder, disk: DiskPlan): DiskAct[] {
  let text = '';
  try {
    text = readFileSync(join(folder, 'disks', `${disk.name}.log`), 'utf8');
  } catch {
    return [];
  }
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as DiskAct);
}

/** How many runners the machine has started, over all its boots. */
export function runnerStarts({ folder }: MachineFolder): number {
  return readFileSync(join(folder, 'runner.starts'), 'utf8').trim().split('\n').length;
}
