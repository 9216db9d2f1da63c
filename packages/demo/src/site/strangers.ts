/**
 * Machines that nobody has enrolled: cabled and with a BMC, but in no list. They do nothing but
 * take an inventory, so that many of them fit on a small computer.
 */
import { seededRandom } from '@rackwright/sim';
import type { FirmwareForm } from '@rackwright/sim/firmware';
import { type PlannedMachine, uuidOf } from '../fleet.ts';
import { loopback } from './configuration.ts';
import type { HousedMachine } from './machine.ts';

/** Strangers that one demo may have. */
export const strangersMax = 64;

const forms: readonly FirmwareForm[] = ['bios', 'uefi', 'uefiHttp'];
/** Their chance must not be that of the fleet. */
const seedShift = 7_919;

/** Named u1, u2, …, spread over the racks one by one; the same seed makes the same ones. */
export function planStrangers(
  count: number,
  racks: readonly string[],
  seed: number,
): PlannedMachine[] {
  const random = seededRandom(seed + seedShift);
  return Array.from({ length: count }, (_, index): PlannedMachine => {
    const name = `u${index + 1}`;
    const pairs = [...random.bytes(2), index].map((byte) => byte.toString(16).padStart(2, '0'));
    return {
      name,
      rack: racks[index % racks.length] ?? '',
      form: forms[index % forms.length] ?? 'bios',
      mac: ['52', '54', '01', ...pairs].join(':'),
      uuid: uuidOf(random.bytes(16)),
      serial: `NEW-${index + 1}`,
      disks: [{ name: 'vda', serial: `${name}-DISK`, model: 'Flash 1', kind: 'discard' }],
      takesImages: false,
      fault: undefined,
      isExample: false,
      seed: random.below(2 ** 31),
    };
  });
}

/** The manifest of the machines, as a person writes it who has bought them. */
export function manifestOf(machines: readonly HousedMachine[]): string {
  const lines = machines.map(({ plan, bmc }) =>
    [
      `  - host: ${plan.name}`,
      `    rack: ${plan.rack}`,
      `    serial: ${plan.serial}`,
      `    mac: "${plan.mac}"`,
      `    bmc: "${loopback}:${bmc.port}"`,
      `    certificate: ${bmc.certificateSha256}`,
    ].join('\n'),
  );
  const defaults = 'defaults: { credential: bmc, protocol: redfish, goal: manageable }';
  return `${defaults}\nhosts:\n${lines.join('\n')}\n`;
}
