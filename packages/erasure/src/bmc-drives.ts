/**
 * Compares the drives that a BMC lists with the devices that the runner sees: a drive that no
 * device accounts for is a disk with data that nobody would erase. Pure.
 *
 * Invariants:
 * B1 Every listed drive gets exactly one finding.
 * B2 A device accounts for one drive, its best match: of two equal drives and one device, one is a
 *    gap. RAID volumes are the exception: nothing says how many drives are behind one.
 * B3 Two meaningful serial numbers that differ mean two disks, also when all else is equal.
 */
import type { StorageSign } from '@rackwright/messages';
import { type DeviceFacts, deviceIdentity, type Transport } from './facts.ts';
import { meaningfulSerial } from './identity.ts';

/** A drive in its BMC's list; an unreported value is empty or 0. */
export interface ListedDrive {
  /** The BMC's name: "Disk Bay 3". */
  readonly name: string;
  readonly model: string;
  readonly serial: string;
  readonly sizeBytes: number;
  /** Further words of the BMC: maker, media, protocol. */
  readonly detail: string;
}

export type DriveMatch = 'serial' | 'partOfSerial' | 'modelAndSize';

export type DriveFinding =
  | {
      readonly kind: 'accounted';
      readonly drive: ListedDrive;
      readonly device: DeviceFacts;
      readonly by: DriveMatch;
      /** Bytes that the BMC lists beyond the device's size; 0 when the sizes agree. */
      readonly hiddenBytes: number;
    }
  /** Volumes of a RAID controller are seen, and this may be a drive behind one of them. */
  | {
      readonly kind: 'behindVolume';
      readonly drive: ListedDrive;
      readonly volumes: readonly DeviceFacts[];
      /** The objection to it, unless a policy accepts it. */
      readonly reason: string;
      readonly action: string;
    }
  /** Virtual media, or an optical drive. */
  | { readonly kind: 'notStorage'; readonly drive: ListedDrive; readonly reason: string }
  | {
      readonly kind: 'gap';
      readonly drive: ListedDrive;
      readonly reason: string;
      /** The person's action about it. */
      readonly action: string;
    };

/** The facts of a drive. */
export function listedDriveOf({
  name,
  model,
  serial,
  sizeBytes,
  detail,
}: StorageSign): ListedDrive {
  return { name, model, serial, sizeBytes: Number(sizeBytes), detail };
}

/** Transports of devices that are no drive of the machine. */
const notOfTheMachine: ReadonlySet<Transport> = new Set([
  'virtualMedia',
  'optical',
  'kernel',
  'mmcBoot',
  'multipath',
  'iscsi',
  'nvmeFabrics',
  'fibreChannel',
]);

/** BMCs round sizes, to whole gigabytes of either kind; below this share sizes agree. */
const sizeShareTolerated = 0.01;
/** Shortest part of a serial number that is taken for all of it. */
const serialPartMin = 8;
/** Shortest part of a model name that is taken for all of it. */
const modelPartMin = 4;

/** One finding per drive, in the order of the list. */
export function compareBmcDrives(
  drives: readonly ListedDrive[],
  devices: readonly DeviceFacts[],
): DriveFinding[] {
  const candidates = devices.filter(({ transport }) => !notOfTheMachine.has(transport));
  const volumes = candidates.filter(({ raidVolume }) => raidVolume);
  const free = new Set(candidates.filter(({ raidVolume }) => !raidVolume));
  const findings = new Map<ListedDrive, DriveFinding>();
  for (const drive of drives) {
    const notStorage = findNotStorage(drive);
    if (notStorage !== undefined) findings.set(drive, notStorage);
  }
  // The surest way first for all drives, so that a guess for one takes no device that is certain
  // for another.
  for (const { by, fits } of ways) {
    for (const drive of drives) {
      if (findings.has(drive)) continue;
      const device = [...free].find((candidate) => fits(drive, candidate));
      if (device === undefined) continue;
      free.delete(device);
      const hiddenBytes = hiddenBehind(drive, device);
      findings.set(drive, { kind: 'accounted', drive, device, by, hiddenBytes });
    }
  }
  return drives.map((drive) => findings.get(drive) ?? unaccounted(drive, volumes, free));
}

const ways: readonly {
  readonly by: DriveMatch;
  readonly fits: (drive: ListedDrive, device: DeviceFacts) => boolean;
}[] = [
  { by: 'serial', fits: (drive, device) => sameSerial(drive, device) && sizesAgree(drive, device) },
  { by: 'serial', fits: sameSerial },
  { by: 'partOfSerial', fits: partOfSerial },
  { by: 'modelAndSize', fits: sameModelAndSize },
];

function sameSerial(drive: ListedDrive, device: DeviceFacts): boolean {
  const listed = plainSerial(drive.serial);
  return listed !== undefined && serialsOf(device).includes(listed);
}

/** BMCs cut serial numbers, or put the maker's prefix before them. */
function partOfSerial(drive: ListedDrive, device: DeviceFacts): boolean {
  const listed = plainSerial(drive.serial);
  if (listed === undefined) return false;
  return serialsOf(device).some((seen) => {
    const [short, long] = listed.length < seen.length ? [listed, seen] : [seen, listed];
    return short.length >= serialPartMin && (long.startsWith(short) || long.endsWith(short));
  });
}

/** B3: only where one side says no serial number. */
function sameModelAndSize(drive: ListedDrive, device: DeviceFacts): boolean {
  const bothSay =
    plainSerial(drive.serial) !== undefined && plainSerial(device.serial) !== undefined;
  if (bothSay || drive.sizeBytes === 0 || !sizesAgree(drive, device)) return false;
  const [listed, seen] = [plain(drive.model), plain(device.model)];
  const [short, long] = listed.length < seen.length ? [listed, seen] : [seen, listed];
  return short.length >= modelPartMin && long.includes(short);
}

function serialsOf({ serial, wwn }: DeviceFacts): readonly string[] {
  const number = wwn.replace(/^(?:0x|naa\.|eui\.)/iu, '');
  return [plainSerial(serial), plainSerial(number)].filter((text) => text !== undefined);
}

/** Without padding, case and separators; undefined when it names nothing. */
function plainSerial(serial: string): string | undefined {
  const meaningful = meaningfulSerial(serial);
  if (meaningful === undefined) return undefined;
  const text = plain(meaningful).replace(/^0+(?=.)/, '');
  return text === '' ? undefined : text;
}

function plain(text: string): string {
  return text.toUpperCase().replaceAll(/[^0-9A-Z]/g, '');
}

/** An unreported size agrees with every other. */
function sizesAgree(drive: ListedDrive, device: DeviceFacts): boolean {
  if (drive.sizeBytes === 0 || device.sizeBytes === 0) return true;
  const difference = Math.abs(drive.sizeBytes - device.sizeBytes);
  return difference <= drive.sizeBytes * sizeShareTolerated;
}

function hiddenBehind(drive: ListedDrive, device: DeviceFacts): number {
  return sizesAgree(drive, device) ? 0 : Math.max(0, drive.sizeBytes - device.sizeBytes);
}

/** Words that only virtual media and optical drives are called by. */
const opticalWords =
  /\b(?:(?:cd|dvd|bd)(?:[-+ ]?(?:rom|ram|rw|r|re))?|optical|floppy|virtual ?media)\b/iu;

/** The finding of an entry that is no disk at all. */
function findNotStorage(drive: ListedDrive): DriveFinding | undefined {
  const words = opticalWords.exec([drive.name, drive.model, drive.detail].join(' / '));
  if (words === null) return undefined;
  const reason = `an optical drive or virtual media ("${words[0]}")`;
  return { kind: 'notStorage', drive, reason };
}

function unaccounted(
  drive: ListedDrive,
  volumes: readonly DeviceFacts[],
  left: ReadonlySet<DeviceFacts>,
): DriveFinding {
  if (volumes.length > 0) return behindVolume(drive, volumes);
  const alike = [...left].find(
    (device) => sizesAgree(drive, device) && plain(device.model) === plain(drive.model),
  );
  const called = nameOf(drive);
  if (alike === undefined) {
    const reason = `the BMC lists ${called}, and the runner sees no such disk`;
    return { kind: 'gap', drive, reason, action: actionOf(drive) };
  }
  const seen = `the runner sees ${deviceIdentity(alike) || alike.name} of the same model instead`;
  const reason = `the BMC lists ${called}; ${seen}`;
  const action =
    'compare the serial number on the disk with both; if the BMC lists a disk that is gone, ' +
    'restart the BMC, then inspect the host again';
  return { kind: 'gap', drive, reason, action };
}

function behindVolume(drive: ListedDrive, volumes: readonly DeviceFacts[]): DriveFinding {
  const names = volumes.map((volume) => deviceIdentity(volume) || volume.name).join(', ');
  const reason =
    `the BMC lists ${nameOf(drive)}, and no disk accounts for it: ` +
    `it may be a part of RAID volume ${names}, or a spare with data of its own`;
  const action =
    'let its controller show single drives, or, if each of its drives is part of a volume, ' +
    'set cleaning.raid_drives to accept';
  return { kind: 'behindVolume', drive, volumes, reason, action };
}

function actionOf({ name }: ListedDrive): string {
  const disk = name === '' ? 'the disk' : `the disk in "${name}"`;
  return (
    `look whether ${disk} is plugged in, works, and hangs on a controller that shows it to the ` +
    'system (no RAID mode, no disabled port); pull it or make it seen, then inspect the host again'
  );
}

/** "Disk Bay 3 (serial A, model B, 960 GB)": how a person finds it. */
function nameOf({ name, serial, model, sizeBytes }: ListedDrive): string {
  const gigabytes = Math.round(sizeBytes / 1e9);
  const traits = [
    ...(serial === '' ? [] : [`serial ${serial}`]),
    ...(model === '' ? [] : [`model ${model}`]),
    ...(gigabytes === 0 ? [] : [`${gigabytes} GB`]),
  ];
  const about = traits.length === 0 ? '' : ` (${traits.join(', ')})`;
  return `${name === '' ? 'a drive' : `"${name}"`}${about}`;
}
