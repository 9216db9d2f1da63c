/**
 * A software machine is a folder:
 *
 *     machine.json   what this file describes
 *     disks/         file disks, as the runner reads them (packages/runner, file-disk-description)
 *     run/           what is in memory, made anew at each power-on: the ramdisk's /run, or
 *                    system.json while a system runs that was started from a disk
 *     dmi.json       what the firmware tells the operating system, made anew at each power-on
 *     machine.log    its screen
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BootIdentity, BootNetwork, FirmwareForm } from '../firmware/index.ts';

export interface MachineDescription extends BootIdentity {
  readonly serial: string;
  /** The BMC's in-band identity; without it there is none to ask. */
  readonly bmcAddress?: string;
  readonly form: FirmwareForm;
  readonly network: BootNetwork;
  /** The runner's entry file: its source, or a bundle of it. */
  readonly runnerProgram: string;
  /** Words added to the kernel's command line. */
  readonly extraArguments: string;
}

/** The boot source at power-on. */
export type BootSource = 'network' | 'disk';

export function writeDescription(folder: string, description: MachineDescription): void {
  writeFileSync(join(folder, 'machine.json'), JSON.stringify(description));
}

export function readDescription(folder: string): MachineDescription {
  return JSON.parse(readFileSync(join(folder, 'machine.json'), 'utf8')) as MachineDescription;
}
