/** A machine of the demo with its BMC, which is what really switches it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BootNetwork } from '@rackwright/sim/firmware';
import {
  type DiskPlan,
  describeDisk,
  type FoundSystem,
  findSystem,
  holdsImage,
  holdsPattern,
  makeDisk,
  SoftwareMachine,
  sizeOfDisk,
  writeDescription,
} from '@rackwright/sim/machine';
import { type RedfishBmc, startRedfishBmc } from '@rackwright/sim/redfish';
import { type FaultName, faults } from '../faults.ts';
import { imageDiskModel, type PlannedMachine, smbiosBytes } from '../fleet.ts';
import { loopback } from './configuration.ts';
import { programPath } from './folder.ts';

/** The credentials that every BMC of the demo accepts. */
export const bmcUser = 'admin';
export const bmcPassword = 'correct horse';

export interface HousedMachine {
  readonly plan: PlannedMachine;
  readonly folder: string;
  /** The disks that are in it now: disks are swapped. */
  readonly disks: DiskPlan[];
  readonly power: SoftwareMachine;
  readonly bmc: RedfishBmc;
  /** Words on the kernel's command line of its next boot, beside the served ones. */
  readonly bootsWith: (kernelArgs: string) => void;
}

/** The delay until a switch shows: shorter than in the field, but never zero. */
const powerDelayMs = [200, 900] as const;

export async function houseMachine(
  siteFolder: string,
  plan: PlannedMachine,
  network: BootNetwork,
): Promise<HousedMachine> {
  const folder = join(siteFolder, 'machines', plan.name);
  mkdirSync(folder, { recursive: true });
  const { mac, serial, form } = plan;
  const bootsWith = (extraArguments: string): void =>
    writeDescription(folder, {
      mac,
      uuid: smbiosBytes(plan.uuid),
      serial,
      form,
      network,
      runnerProgram: programPath(siteFolder, 'runner'),
      extraArguments,
    });
  bootsWith('');
  for (const disk of plan.disks) makeDisk(folder, disk);
  const power = new SoftwareMachine({ folder, program: programPath(siteFolder, 'machine') });
  const disks = [...plan.disks];
  const bmc = await startRedfishBmc({
    address: loopback,
    user: bmcUser,
    password: bmcPassword,
    identity: { uuid: plan.uuid, serial, manufacturer: 'Rackwright', model: 'Software Machine' },
    machine: {
      powerOn: ({ device }) => {
        const isNetwork = device === 'pxe' || device === 'uefiHttp';
        power.powerOn(isNetwork ? 'network' : 'disk');
      },
      powerOff: () => power.powerOff(),
      isOn: () => power.isOn(),
    },
    habits: {
      powerDelayMs,
      mode: form === 'bios' ? 'Legacy' : 'UEFI',
      bootTargets: form === 'uefiHttp' ? ['None', 'UefiHttp', 'Hdd'] : ['None', 'Pxe', 'Hdd'],
      onceReadsBackAs: plan.seed % 2 === 0 ? 'Once' : 'Continuous',
    },
    inventory: () => ({
      drives: disks.map(driveOf),
      emptyBays: 1,
      interfaces: [{ mac, speedMbps: 1_000 }],
    }),
    seed: plan.seed,
  });
  const housed = { plan, folder, disks, power, bmc, bootsWith };
  // A password that is wrong from the start is the control plane's; the BMC is in order.
  if (plan.fault !== undefined && faults[plan.fault].kind !== 'credential') {
    setFault(housed, plan.fault);
  }
  return housed;
}

/** A disk as its BMC lists it: its own words for the same things. */
function driveOf(disk: DiskPlan) {
  const { serial, model = '', kind } = disk;
  const [media, protocol] =
    kind === 'format' ? (['SSD', 'NVMe'] as const) : (['HDD', 'SATA'] as const);
  const padded = ` ${serial.toLowerCase()} `;
  return {
    serial: padded,
    model,
    manufacturer: 'Rackwright',
    capacityBytes: sizeOfDisk(disk),
    media,
    protocol,
  };
}

/**
 * Breaks the machine, or with "none" repairs all of it. With "wrong-password" the BMC no longer
 * accepts the password that it accepted until now.
 */
export function setFault(machine: HousedMachine, name: FaultName | 'none'): void {
  const { disks, folder, bmc, bootsWith } = machine;
  const fault = name === 'none' ? undefined : faults[name];
  if (fault?.kind === 'bmc') bmc.setFault(fault.bmc);
  if (fault?.kind === 'credential') bmc.setFault({ kind: 'wrongPassword' });
  if (fault?.kind === 'boot') bootsWith(fault.kernelArgs);
  if (fault === undefined) {
    bmc.setFault({ kind: 'none' });
    bootsWith('');
  }
  const [first] = disks;
  if (first === undefined || (fault !== undefined && fault.kind !== 'disk')) return;
  const own = (first.faults ?? []).filter((each) => 'delayMs' in each);
  describeDisk(folder, { ...first, faults: fault === undefined ? own : [...own, fault.disk] });
}

/** From its next boot on, each write to its first disk takes so many times as long as at first. */
export function slowWrites({ disks, folder }: HousedMachine, factor: number): void {
  const [first] = disks;
  if (first === undefined) return;
  const faults = (first.faults ?? []).map((each) => {
    return 'delayMs' in each ? { ...each, delayMs: Number(each.delayMs) * factor } : each;
  });
  describeDisk(folder, { ...first, faults });
}

/** Somebody pulls its first disk and puts a used one of the same kind in its place. */
export function swapDisk({ disks, folder }: HousedMachine): void {
  const [first, ...others] = disks;
  if (first === undefined) return;
  const swapped = { ...first, serial: `${first.serial}-B` };
  makeDisk(folder, swapped);
  disks.splice(0, disks.length, swapped, ...others);
}

/** Disks of the machine that still hold their earlier content, read from outside. */
export function dirtyDisks({ folder, disks }: HousedMachine): readonly DiskPlan[] {
  return disks.filter((disk) => holdsPattern(folder, disk));
}

/** The disk that images come onto. */
function imageDisk({ disks, plan }: HousedMachine): DiskPlan {
  const disk = disks.find(({ model }) => model === imageDiskModel);
  if (disk === undefined) throw new Error(`${plan.name} takes no images`);
  return disk;
}

/** Whether that disk holds the image, read from outside. */
export function holdsImageOf(machine: HousedMachine, image: Buffer): boolean {
  return holdsImage(machine.folder, imageDisk(machine), image);
}

/** What the machine would start from its disks now. */
export function findSystemOf({ folder }: HousedMachine): FoundSystem {
  return findSystem(join(folder, 'disks'));
}

/** The commands that the BMC got, by its own log: everything but reads and sign-ins. */
export function commandsOf({ bmc }: HousedMachine): string[] {
  return bmc
    .calls()
    .filter(({ method, path }) => method !== 'GET' && !path.includes('/Sessions'))
    .map(({ method, path, status }) => `${method} ${path} ${status}`);
}
