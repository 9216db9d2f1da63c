/**
 * The parts of the demo, decided from the options alone: racks, machines, their disks and their
 * faults.
 *
 * F1 The same options make the same fleet.
 */

import { seededRandom } from '@rackwright/sim';
import type { FirmwareForm } from '@rackwright/sim/firmware';
import type { DiskPlan } from '@rackwright/sim/machine';
import { canBecomeAvailableWith, type FaultName, faults } from './faults.ts';
import type { DemoOptions } from './options.ts';

export interface Fleet {
  /** Ids: "r1", "r2". */
  readonly racks: readonly string[];
  readonly machines: readonly PlannedMachine[];
  readonly seed: number;
}

export interface PlannedMachine {
  /** The host's id in the control plane. */
  readonly name: string;
  readonly rack: string;
  readonly form: FirmwareForm;
  readonly mac: string;
  /** In the form of a BMC's answer: canonical. */
  readonly uuid: string;
  readonly serial: string;
  readonly disks: readonly DiskPlan[];
  /** Whether its second disk has room for an image; the story deploys onto such machines. */
  readonly takesImages: boolean;
  readonly fault: FaultName | undefined;
  /** Whether the story explains its trouble. */
  readonly isExample: boolean;
  readonly seed: number;
}

/** The four ways in which BMCs are broken in the field; the story explains a host of each. */
export const examples: readonly FaultName[] = [
  'wrong-password',
  'silent',
  'rubbish',
  'yes-but-nothing',
];

const forms: readonly FirmwareForm[] = ['bios', 'uefi', 'uefiHttp'];

/** Machines that the story deploys images onto. */
const imageMachinesMax = 3;
/** An image, and the 8 MiB of its first-boot data behind it. */
const imageDiskBytes = 16 * 1024 * 1024;
/** The model of the disk that images come onto, as hints name it. */
export const imageDiskModel = 'Flash 16';

/** The delay of each write to a disk, so that a person can see it happen. */
const writeDelayMs = 60;

export function planFleet(options: DemoOptions): Fleet {
  const random = seededRandom(options.seed);
  const racks = Array.from({ length: options.racks }, (_, index) => `r${index + 1}`);
  const faultOf = new Map<string, FaultName>();
  for (const { name, host } of options.faults) {
    faultOf.set(host ?? `h${random.below(options.hosts) + 1}`, name);
  }
  const names = Array.from({ length: options.hosts }, (_, index) => `h${index + 1}`);
  const takers = names.filter((name) => isSound(faultOf.get(name))).slice(-imageMachinesMax);
  const plan = (name: string, index: number): PlannedMachine => {
    const isExample = index >= options.hosts;
    const takesImages = !isExample && takers.includes(name);
    return {
      name,
      rack: racks[index % racks.length] ?? '',
      form: forms[index % forms.length] ?? 'bios',
      mac: ['52', '54', '00', ...hexPairs(random.bytes(2)), hexPairs([index])[0]].join(':'),
      uuid: uuidOf(random.bytes(16)),
      serial: `SW-${String(options.seed)}-${index + 1}`,
      disks: [
        overwrittenDisk(name, faultOf.get(name), isExample ? 0 : writeDelayMs),
        formattedDisk(name, takesImages),
      ],
      takesImages,
      fault: isExample ? examples[index - options.hosts] : faultOf.get(name),
      isExample,
      seed: random.below(2 ** 31),
    };
  };
  const wanted = options.scripts.length === 0 ? [...names, ...examples] : names;
  return { racks, machines: wanted.map(plan), seed: options.seed };
}

/** Machines that have to become available before the demo can go on. */
export function soundMachines({ machines }: Fleet): readonly PlannedMachine[] {
  return machines.filter(({ fault }) => isSound(fault));
}

function isSound(fault: FaultName | undefined): boolean {
  return fault === undefined || canBecomeAvailableWith(fault);
}

/** The first disk: a fault of disks is this one's. */
function overwrittenDisk(
  host: string,
  faultName: FaultName | undefined,
  delayMs: number,
): DiskPlan {
  const fault = faultName === undefined ? undefined : faults[faultName];
  const slow = { kind: 'slow', operation: 'write', delayMs };
  const broken = fault?.kind === 'disk' ? [fault.disk] : [];
  return {
    name: 'vda',
    serial: `${host}-DISK`,
    model: 'Spinning 8',
    kind: 'overwrite',
    faults: [slow, ...broken],
  };
}

function formattedDisk(host: string, takesImages: boolean): DiskPlan {
  const disk = { name: 'nvme0', serial: `${host}-NVME`, kind: 'format' } as const;
  if (!takesImages) return { ...disk, model: 'Flash 2' };
  return { ...disk, model: imageDiskModel, sizeBytes: imageDiskBytes };
}

/** Version 4, so that it looks like one of the field's. */
export function uuidOf(bytes: Uint8Array): string {
  const digits = Buffer.from(bytes).toString('hex').split('');
  digits[12] = '4';
  digits[16] = '8';
  const text = digits.join('');
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/**
 * The bytes of a UUID as SMBIOS holds them: the first three fields with their low byte first
 * (SMBIOS 2.6, §7.2.1).
 */
export function smbiosBytes(uuid: string): string {
  const swap = (field: string) => (field.match(/../g) ?? []).reverse().join('');
  const [a = '', b = '', c = '', ...rest] = uuid.split('-');
  return [swap(a), swap(b), swap(c), ...rest].join('');
}

function hexPairs(bytes: Iterable<number>): string[] {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
}
