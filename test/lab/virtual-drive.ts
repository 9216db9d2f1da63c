/** The virtual drive of a machine that is on, by what QEMU itself says and does. */
import { VIRTUAL_DRIVE } from './firmware.ts';
import { ipmitool, type LabBmc } from './ipmi-sim.ts';
import { until } from './processes.ts';
import { askQemu, type QmpMachine, tellQemu } from './qmp-command.ts';
import type { Site } from './site.ts';

/** From an order to the machine's power-on: discovery of the BMC and inspection come first. */
const BOOT_WAIT_MS = 400_000;
const ANSWER_WAIT_MS = 60_000;

interface BlockDevice {
  readonly qdev?: string;
  readonly inserted?: { readonly file: string };
}

export async function insertMedium(machine: QmpMachine, file: string): Promise<void> {
  const how = { filename: file, format: 'raw', 'read-only-mode': 'read-only' };
  const command = { execute: 'blockdev-change-medium', arguments: { id: VIRTUAL_DRIVE, ...how } };
  await tellQemu(machine, [command]);
}

/** Also when the system has locked the tray, as the button of a BMC does. */
export async function ejectMedium(machine: QmpMachine): Promise<void> {
  await tellQemu(machine, [{ execute: 'eject', arguments: { id: VIRTUAL_DRIVE, force: true } }]);
}

/** File that it holds; undefined: it is empty. Rejects when the machine is off. */
async function mediumIn(machine: QmpMachine): Promise<string | undefined> {
  const devices = (await askQemu(machine, { execute: 'query-block' })) as readonly BlockDevice[];
  const drive = devices.find(({ qdev }) => qdev === VIRTUAL_DRIVE);
  if (drive === undefined) throw new Error(`QEMU has no drive "${VIRTUAL_DRIVE}"`);
  return drive.inserted?.file;
}

/**
 * Call when the host is ordered: waits until a medium is in the drive of the machine, which is on.
 * Call what it answers when the host has come to its goal, and is off: the drive is empty.
 */
export async function watchVirtualDrive(
  { lab, findings }: Site,
  { machine, address }: LabBmc,
): Promise<() => Promise<void>> {
  const isIn = (): Promise<boolean> =>
    mediumIn(machine).then(
      (file) => file !== undefined,
      () => false, // it is off
    );
  await until('a medium in the virtual drive', BOOT_WAIT_MS, isIn);
  findings.check('QEMU shows a medium in the virtual drive', true);
  return async () => {
    await ipmitool(lab.network, address(), ['chassis', 'power', 'on']);
    let file: string | undefined;
    const isAsked = (): Promise<boolean> =>
      mediumIn(machine).then(
        (found) => {
          file = found;
          return true;
        },
        () => false, // it is not on yet
      );
    await until('an answer of QEMU', ANSWER_WAIT_MS, isAsked);
    findings.check('QEMU shows an empty virtual drive afterwards', file === undefined, file);
  };
}
