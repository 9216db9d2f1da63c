/**
 * A device's native size, compared with its addressable size. Reads only; the parsers are pure.
 *
 * Invariants:
 * C1 A device that cannot be queried, or whose answer is unknown, is `notExamined` with the reason:
 *    silence never means "nothing is hidden".
 */
import type { CapacityFacts } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import type { AtaIdentity } from './ata-identity.ts';
import { toolOutput } from './tool.ts';

const askTimeoutMs = 20_000;

/** Addressable and native sectors, as `hdparm -N` prints them. */
export interface MaxSectors {
  readonly addressable: number;
  readonly native: number;
}

/** ` max sectors   = 976773168/1953525168, HPA is enabled`; undefined for anything else. */
export function parseMaxSectors(text: string): MaxSectors | undefined {
  const match = /^[ \t]*max sectors\s*=\s*(\d+)\/(\d+)\s*,(.*)$/m.exec(text);
  if (match === null) return undefined;
  const [, addressable = '', native = '', rest = ''] = match;
  if (/invalid/.test(rest)) return undefined;
  const sectors = { addressable: Number(addressable), native: Number(native) };
  return isSize(sectors.addressable) && isSize(sectors.native) ? sectors : undefined;
}

/**
 * The maximum that the overlay can be taken back to: `Real max sectors: 1953525168`. For a device
 * that has refused, hdparm prints made-up values under the revision 0.
 */
export function parseRealMaxSectors(text: string): number | undefined {
  const [, revision = '0'] = /^DCO Revision: 0x([\da-f]+)/m.exec(text) ?? [];
  if (Number.parseInt(revision, 16) === 0) return undefined;
  const [, sectors = ''] = /^[ \t]*Real max sectors:\s*(\d+)\s*$/m.exec(text) ?? [];
  return isSize(Number(sectors)) ? Number(sectors) : undefined;
}

/** READ CAPACITY(16) as `sg_readcap --16` prints it, bytes. */
export function parseReadCapacity(text: string): number | undefined {
  const [, blocks = ''] = /Number of logical blocks=(\d+)/.exec(text) ?? [];
  const [, length = ''] = /Logical block length=(\d+) bytes/.exec(text) ?? [];
  const bytes = Number(blocks) * Number(length);
  return isSize(bytes) ? bytes : undefined;
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

/** An ATA device: READ NATIVE MAX ADDRESS (EXT) and DEVICE CONFIGURATION IDENTIFY. */
export async function readAtaCapacity(
  exec: Exec,
  path: string,
  identity: AtaIdentity,
  sizeBytes: number,
  sectorBytes: number,
): Promise<CapacityFacts> {
  const limits = identity.hostProtectedArea || identity.accessibleMaxAddress;
  const max = parseMaxSectors(await toolOutput(exec, 'hdparm', ['-N', path], askTimeoutMs));
  if (max === undefined && limits) {
    return notExamined('it offers a host protected area and does not say its native size');
  }
  const nativeSectors = max?.native ?? Math.floor(sizeBytes / sectorBytes);
  const real = identity.overlay ? await readRealMax(exec, path) : nativeSectors;
  return compareSizes({ sizeBytes, sectorBytes, nativeSectors, realSectors: real });
}

async function readRealMax(exec: Exec, path: string): Promise<number | undefined> {
  return parseRealMaxSectors(
    await toolOutput(exec, 'hdparm', ['--dco-identify', path], askTimeoutMs),
  );
}

/**
 * `realSectors`: without any overlay; undefined when the device has overlays of unreported size.
 */
export function compareSizes(sizes: {
  readonly sizeBytes: number;
  readonly sectorBytes: number;
  readonly nativeSectors: number;
  readonly realSectors: number | undefined;
}): CapacityFacts {
  const { sizeBytes, sectorBytes, nativeSectors, realSectors } = sizes;
  const native = nativeSectors * sectorBytes;
  const real = realSectors === undefined ? native : realSectors * sectorBytes;
  return {
    kind: 'examined',
    nativeBytes: Math.max(native, real),
    hostProtectedBytes: Math.max(0, native - sizeBytes),
    overlayBytes: Math.max(0, real - Math.max(native, sizeBytes)),
    ...(realSectors === undefined
      ? { overlayUnknown: 'its device configuration overlay is frozen or does not answer' }
      : {}),
  };
}

/**
 * A SCSI device: READ CAPACITY(16) answers its present size. MODE SELECT can make a disk smaller by
 * its block descriptor, and no command reads the size that the disk was made with.
 */
export async function readScsiCapacity(
  exec: Exec,
  path: string,
  sizeBytes: number,
): Promise<CapacityFacts> {
  const output = await toolOutput(exec, 'sg_readcap', ['--16', path], askTimeoutMs);
  const native = parseReadCapacity(output);
  if (native === undefined) return notExamined('READ CAPACITY(16) has no answer');
  if (native <= sizeBytes) {
    return notExamined('a SCSI disk does not say whether MODE SELECT has made it smaller');
  }
  const hostProtectedBytes = native - sizeBytes;
  return { kind: 'examined', nativeBytes: native, hostProtectedBytes, overlayBytes: 0 };
}

export function notExamined(reason: string): CapacityFacts {
  return { kind: 'notExamined', reason };
}
