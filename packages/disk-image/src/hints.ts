/**
 * Which disk of a host is the root disk. Pure.
 *
 * H1 Every hint that is given must fit; the answer is one disk or an error that tells why not.
 * H2 Without hints a host must have one disk: none is guessed.
 */
import { ImageError } from './failure.ts';

/** The known properties of a disk. */
export interface DiskFacts {
  /** Kernel name; it changes between boots and is no hint. */
  readonly name: string;
  readonly model: string;
  readonly serial: string;
  readonly wwn: string;
  readonly sizeBytes: number;
  readonly rotational: boolean;
  readonly readOnly: boolean;
  readonly removable: boolean;
  /** Names under /dev/disk/by-path, which tell the slot. */
  readonly paths?: readonly string[];
}

/** Properties that the root disk has to have. */
export interface RootDiskHints {
  readonly serial?: string;
  readonly wwn?: string;
  readonly model?: string;
  readonly byPath?: string;
  readonly rotational?: boolean;
  readonly sizeBytes?: number;
  readonly minSizeBytes?: number;
}

/** Disks that a message lists at most. */
const shownMax = 8;

const tests: {
  readonly [Name in keyof Required<RootDiskHints>]: (
    disk: DiskFacts,
    wanted: Required<RootDiskHints>[Name],
  ) => boolean;
} = {
  serial: (disk, wanted) => disk.serial === wanted,
  wwn: (disk, wanted) => plainWwn(disk.wwn) === plainWwn(wanted),
  model: (disk, wanted) => disk.model === wanted,
  byPath: (disk, wanted) =>
    disk.paths?.some((path) => plainPath(path) === plainPath(wanted)) ?? false,
  rotational: (disk, wanted) => disk.rotational === wanted,
  sizeBytes: (disk, wanted) => disk.sizeBytes === wanted,
  minSizeBytes: (disk, wanted) => disk.sizeBytes >= wanted,
};
const names = Object.keys(tests) as (keyof RootDiskHints)[];

/** The one disk that fits (H1, H2). `disks`: those that may be written to. Throws `ImageError`. */
export function rootDisk<Disk extends DiskFacts>(
  disks: readonly Disk[],
  hints: RootDiskHints,
): Disk {
  const usable = disks.filter((disk) => !disk.readOnly && !disk.removable);
  const fitting = usable.filter((disk) => names.every((name) => fits(name, disk, hints)));
  const [first] = fitting;
  if (first !== undefined && fitting.length === 1) return first;
  const given = describeHints(hints);
  if (first === undefined) {
    const reasons = usable.map((disk) => `${describe(disk)}: ${mismatch(disk, hints)}`);
    const there =
      usable.length === 0 ? 'the host has no disk that can be written' : listed(reasons);
    throw new ImageError('noRootDisk', `no disk fits ${given}; ${there}`);
  }
  const found = listed(fitting.map(describe));
  const advice = 'give a hint that only one of them has, best its serial number';
  throw new ImageError('noRootDisk', `${fitting.length} disks fit ${given}: ${found}; ${advice}`);
}

function fits(name: keyof RootDiskHints, disk: DiskFacts, hints: RootDiskHints): boolean {
  const wanted = hints[name];
  return wanted === undefined || tests[name](disk, wanted as never);
}

function mismatch(disk: DiskFacts, hints: RootDiskHints): string {
  return `not by ${names.filter((name) => !fits(name, disk, hints)).join(', ')}`;
}

function describeHints(hints: RootDiskHints): string {
  const given = names.filter((name) => hints[name] !== undefined);
  if (given.length === 0) return 'without a hint';
  return `the hints ${given.map((name) => `${name} ${String(hints[name])}`).join(', ')}`;
}

function describe(disk: DiskFacts): string {
  const kind = disk.rotational ? 'rotational' : 'not rotational';
  return `${disk.serial || disk.wwn || disk.name} (${disk.sizeBytes} bytes, ${kind})`;
}

function listed(texts: readonly string[]): string {
  const more = texts.length > shownMax ? `, and ${texts.length - shownMax} more` : '';
  return `${texts.slice(0, shownMax).join(', ')}${more}`;
}

/** The same number is written "0x5000…", "naa.5000…", "5000…". */
function plainWwn(wwn: string): string {
  return wwn.toLowerCase().replace(/^(0x|naa\.|eui\.|wwn-0x|wwn-)/, '');
}

function plainPath(path: string): string {
  return path.replace(/^\/dev\/disk\/by-path\//, '');
}
