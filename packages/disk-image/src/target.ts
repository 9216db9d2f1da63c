/**
 * Which disk gets an image, in a listing of the host's disks: for the program that writes it, and
 * for the program that shows beforehand what would be written. Pure.
 *
 * T1 Only the host's own storage counts, as for an erasure: nothing remote, no stick, no media of
 *    the BMC.
 * T2 A disk that is kept is never chosen. Hints that fit such a disk are refused even where they
 *    fit another too: their author meant something else.
 * T3 Nothing is guessed: exactly one disk fits, and it can be written.
 */
import { ImageError } from './failure.ts';
import { type DiskFacts, type RootDiskHints, rootDisk } from './hints.ts';

interface TargetFacts extends DiskFacts {
  readonly regions: readonly unknown[];
}

/** A disk with its scope: the host's, the host's but unfit, another's (T1). */
export type TargetCandidate<Disk> =
  | { readonly kind: 'inScope'; readonly device: Disk }
  | { readonly kind: 'refused' | 'listed'; readonly device: Disk; readonly reason: string };

export type TargetChoice<Disk> =
  | { readonly kind: 'disk'; readonly device: Disk }
  | {
      readonly kind: 'refused';
      readonly type: 'keepDisk' | 'noRootDisk';
      readonly message: string;
    };

/** The stored form of hints: empty texts and zeros count as unset. */
export interface KeptHints {
  readonly serial: string;
  readonly wwn: string;
  readonly model: string;
  readonly byPath: string;
  readonly rotational?: boolean | undefined;
  readonly sizeBytes: bigint;
  readonly minSizeBytes: bigint;
}

/** `keep`: serial numbers and WWNs of disks that must not be written. */
export function chooseTarget<Disk extends TargetFacts>(
  candidates: readonly TargetCandidate<Disk>[],
  wanted: KeptHints | undefined,
  keep: readonly string[],
): TargetChoice<Disk> {
  const hints = hintsOf(wanted);
  const own = candidates.filter(({ kind }) => kind !== 'listed');
  const kept = own.map(({ device }) => device).filter((device) => isKeptDisk(device, keep));
  const others = own.map(({ device }) => device).filter((device) => !kept.includes(device));
  if (Object.keys(hints).length === 0) {
    if (others.length > 0 || kept.length === 0) return judged(own, others, hints);
    return refused('keepDisk', `the host has no other disk than what is kept: ${names(kept)}`);
  }
  const meant = kept.filter((device) => fits(device, hints));
  if (meant.length > 0) {
    const message = `the hints fit ${names(meant)}, which is to be kept: give hints that do not`;
    return refused('keepDisk', message);
  }
  return judged(own, others, hints);
}

/** Accepts every spelling: keeping one disk too many is safe. */
export function isKeptDisk(
  { serial, wwn }: Pick<DiskFacts, 'serial' | 'wwn'>,
  keep: readonly string[],
): boolean {
  const own = [serial, wwn].map(plain).filter((name) => name !== '');
  return keep.some((name) => own.includes(plain(name)));
}

/** Names of disks to be kept that no disk has: they protect nothing. */
export function namesOfNone(
  disks: readonly Pick<DiskFacts, 'serial' | 'wwn'>[],
  keep: readonly string[],
): string[] {
  return keep.filter((name) => !disks.some((disk) => isKeptDisk(disk, [name])));
}

function judged<Disk extends TargetFacts>(
  own: readonly TargetCandidate<Disk>[],
  others: readonly Disk[],
  hints: RootDiskHints,
): TargetChoice<Disk> {
  let device: Disk;
  try {
    device = rootDisk(others, hints);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return refused('noRootDisk', error.message);
  }
  const candidate = own.find((each) => each.device === device);
  if (candidate?.kind !== 'inScope') {
    const reason = candidate?.reason ?? 'is not there';
    return refused('noRootDisk', `the disk ${names([device])} ${reason}`);
  }
  const { length } = device.regions;
  if (length !== 1) {
    const count = `has ${length} namespaces; an image goes onto a disk with one`;
    return refused('noRootDisk', `the disk ${names([device])} ${count}`);
  }
  return { kind: 'disk', device };
}

function fits(device: DiskFacts, hints: RootDiskHints): boolean {
  try {
    rootDisk([device], hints);
    return true;
  } catch (error) {
    if (error instanceof ImageError) return false;
    throw error;
  }
}

function plain(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/^(wwn-0x|wwn-|0x|naa\.|eui\.)/, '');
}

function hintsOf(wanted: KeptHints | undefined): RootDiskHints {
  if (wanted === undefined) return {};
  const { serial, wwn, model, byPath, rotational, sizeBytes, minSizeBytes } = wanted;
  return {
    ...(serial === '' ? {} : { serial }),
    ...(wwn === '' ? {} : { wwn }),
    ...(model === '' ? {} : { model }),
    ...(byPath === '' ? {} : { byPath }),
    ...(rotational === undefined ? {} : { rotational }),
    ...(sizeBytes === 0n ? {} : { sizeBytes: Number(sizeBytes) }),
    ...(minSizeBytes === 0n ? {} : { minSizeBytes: Number(minSizeBytes) }),
  };
}

/** Disks that a message lists at most. */
const shownMax = 8;

function names(devices: readonly DiskFacts[]): string {
  const shown = devices.slice(0, shownMax).map(({ serial, wwn, name }) => serial || wwn || name);
  return devices.length > shownMax ? `${shown.join(', ')}, …` : shown.join(', ');
}

function refused(
  type: 'keepDisk' | 'noRootDisk',
  message: string,
): Extract<TargetChoice<never>, { readonly kind: 'refused' }> {
  return { kind: 'refused', type, message };
}
