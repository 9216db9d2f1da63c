/** Folders of software machines: their identity, their BMC's, and disks filled with a pattern. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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

/** Makes the machine's folder below `root`, which is the folder that the BMC stand-in gets. */
export function makeMachine(
  root: string,
  plan: MachinePlan,
  network: BootNetwork,
  runnerProgram: string,
): MachineFolder {
  const folder = join(root, plan.bmcAddress);
  mkdirSync(join(folder, 'disks'), { recursive: true });
  const { mac, uuid, serial, bmcAddress, form = 'bios', extraArguments = '' } = plan;
  const identity = { mac, uuid, serial, bmcAddress };
  writeDescription(folder, { ...identity, form, network, runnerProgram, extraArguments });
  writeFileSync(join(folder, 'guid'), `${uuid.replaceAll(/../g, ' $&')}\n`);
  writeFileSync(join(folder, 'serial'), serial);
  writeFileSync(join(folder, 'password'), bmcPassword);
  for (const disk of plan.disks) makeDisk(folder, disk);
  return { plan, folder };
}

/** The same machine as another piece of hardware: `at` says where in the rack, from 0 on. */
export function anotherMachine(plan: MachinePlan, at: number): MachinePlan {
  const two = at.toString(16).padStart(2, '0');
  return {
    ...plan,
    name: `h${at}`,
    bmcAddress: `127.0.1.${at + 1}`,
    mac: `52:54:00:00:01:${two}`,
    uuid: `${plan.uuid.slice(0, -2)}${two}`,
    serial: `SN-${at}`,
    disks: plan.disks.map((disk) => ({ ...disk, serial: `${disk.serial}-${at}` })),
  };
}

/** The BMC has neither a GUID nor a FRU inventory, as cheap boards have them. */
export function takeWitnessesAway({ folder }: MachineFolder): void {
  for (const name of ['guid', 'serial']) rmSync(join(folder, name));
}

/** Somebody swaps the cables of two BMCs: each machine answers at the other's address from now. */
export function crossBmcs(a: MachineFolder, b: MachineFolder): [MachineFolder, MachineFolder] {
  const between = `${a.folder}.crossed`;
  renameSync(a.folder, between);
  renameSync(b.folder, a.folder);
  renameSync(between, b.folder);
  return [
    { plan: a.plan, folder: b.folder },
    { plan: b.plan, folder: a.folder },
  ];
}

/** Every command that the BMC was given, oldest first, as ipmitool's arguments. */
export function bmcCommands({ folder }: MachineFolder): string[] {
  return linesOf(join(folder, 'commands'));
}

/** What a disk was told that changes it, as its own log says. */
export function diskChanges(machine: MachineFolder, disk: DiskPlan): DiskAct[] {
  const kinds: readonly string[] = ['write', 'zero', 'discard', 'format'];
  return diskLog(machine, disk).filter((act) => kinds.includes(act.kind));
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
  const lines = linesOf(join(folder, 'disks', `${disk.name}.log`));
  return lines.map((line) => JSON.parse(line) as DiskAct);
}

/** None when the file does not exist yet. */
function linesOf(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** How many runners the machine has started, over all its boots. */
export function runnerStarts({ folder }: MachineFolder): number {
  return linesOf(join(folder, 'runner.starts')).length;
}
