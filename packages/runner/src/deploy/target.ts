/**
 * Which disk an image comes onto, in the runner's own listing. Pure.
 *
 * T1 Only the host's own storage counts, as for an erasure: nothing remote, no stick, no media of
 *    the BMC.
 * T2 A disk that is kept is never chosen, and hints that fit one are refused even where they fit
 *    another too: whoever wrote them meant something else.
 * T3 Nothing is guessed: exactly one disk fits, and it can be written.
 */
import type { RootDiskHints as WireHints } from '@rackwright/api';
import { ImageError, type RootDiskHints, rootDisk } from '@rackwright/disk-image';
import {
  type DeviceFacts,
  decideScope,
  type Region,
  type ScopeDecision,
} from '@rackwright/erasure';
import type { Failed } from '@rackwright/results';
import type { DeviceListing } from '../block-devices.ts';

export type ChosenDisk =
  | { readonly kind: 'disk'; readonly device: DeviceFacts; readonly region: Region }
  | { readonly kind: 'refused'; readonly type: Failed['type']; readonly message: string };

type Own = Exclude<ScopeDecision, { readonly kind: 'listed' }>;

/** `keep`: serial numbers and WWNs of disks that must not be written. */
export function chooseDisk(
  { devices }: DeviceListing,
  wanted: WireHints | undefined,
  keep: readonly string[],
): ChosenDisk {
  const hints = hintsOf(wanted);
  const own = decideScope(devices).filter((each): each is Own => each.kind !== 'listed');
  const kept = own.map(({ device }) => device).filter((device) => isKept(device, keep));
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

function judged(
  own: readonly Own[],
  candidates: readonly DeviceFacts[],
  hints: RootDiskHints,
): ChosenDisk {
  let device: DeviceFacts;
  try {
    device = rootDisk(candidates, hints);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return refused('noRootDisk', error.message);
  }
  const decision = own.find((each) => each.device === device);
  if (decision?.kind !== 'inScope') {
    const reason = decision?.reason ?? 'is not there';
    return refused('noRootDisk', `the disk ${names([device])} ${reason}`);
  }
  const [region] = device.regions;
  if (region === undefined || device.regions.length !== 1) {
    const count = `has ${device.regions.length} namespaces; an image goes onto a disk with one`;
    return refused('noRootDisk', `the disk ${names([device])} ${count}`);
  }
  return { kind: 'disk', device, region };
}

function fits(device: DeviceFacts, hints: RootDiskHints): boolean {
  try {
    rootDisk([device], hints);
    return true;
  } catch (error) {
    if (error instanceof ImageError) return false;
    throw error;
  }
}

/** However it is written: to keep one disk too many does no harm. */
function isKept({ serial, wwn }: DeviceFacts, keep: readonly string[]): boolean {
  const own = [serial, wwn].map(plain).filter((name) => name !== '');
  return keep.some((name) => own.includes(plain(name)));
}

function plain(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/^(wwn-0x|wwn-|0x|naa\.|eui\.)/, '');
}

/** What is set; empty texts and zeros say nothing. */
function hintsOf(wanted: WireHints | undefined): RootDiskHints {
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

/** Disks that are told of in a message. */
const shownMax = 8;

function names(devices: readonly DeviceFacts[]): string {
  const shown = devices.slice(0, shownMax).map(({ serial, wwn, name }) => serial || wwn || name);
  return devices.length > shownMax ? `${shown.join(', ')}, …` : shown.join(', ');
}

function refused(type: Failed['type'], message: string): ChosenDisk {
  return { kind: 'refused', type, message };
}
