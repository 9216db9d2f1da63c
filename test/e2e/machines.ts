/** Folders of software machines: their identity, their BMC's, and disks filled with a pattern. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BootNetwork, FirmwareForm } from '@rackwright/sim/firmware';
import { type DiskPlan, makeDisk, writeDescription } from '@rackwright/sim/machine';

export interface MachinePlan {
  readonly name: string;
  /** The BMC's address: one of 127.0.0.0/8. */
  readonly bmcAddress: string;
  readonly mac: string;
  readonly uuid: string;
  readonly serial: string;
  readonly disks: readonly DiskPlan[];
  readonly extraArguments?: string;
  /** Unset means BIOS. */
  readonly form?: FirmwareForm;
}

export interface MachineFolder {
  readonly plan: MachinePlan;
  readonly folder: string;
}

export const bmcPassword = 'correct horse';
const runnerProgram = join(import.meta.dirname, '../../packages/runner/src/main.ts');

/** Makes the machine's folder below `root`, which is the folder that the BMC stand-in gets. */
export function makeMachine(root: string, plan: MachinePlan, network: BootNetwork): MachineFolder {
  const folder = join(root, plan.bmcAddress);
  mkdirSync(folder, { recursive: true });
  const { mac, uuid, serial, form = 'bios', extraArguments = '' } = plan;
  writeDescription(folder, { mac, uuid, serial, form, network, runnerProgram, extraArguments });
  writeFileSync(join(folder, 'guid'), `${uuid.replaceAll(/../g, ' $&')}\n`);
  writeFileSync(join(folder, 'serial'), serial);
  writeFileSync(join(folder, 'password'), bmcPassword);
  for (const disk of plan.disks) makeDisk(folder, disk);
  return { plan, folder };
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
