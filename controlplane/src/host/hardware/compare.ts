/**
 * The hardware of a host as its runner and its BMC list it, side by side. Pure. A difference is
 * information and decides nothing. Whether a drive is a gap is decided in `erasure/gaps.ts`.
 *
 * C1 Each part of a side is in exactly one row.
 * C2 "Only one side has it" is reported only where the other side's list is present and complete.
 * C3 Two non-empty serial numbers that differ mean two parts, even if all else is equal. Only when
 *    both sides name the same slot do they mean one part with a difference.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  compareBmcDrives,
  type DeviceFacts,
  deviceFactsOf,
  type ListedDrive,
  listedDriveOf,
  meaningfulSerial,
} from '@rackwright/erasure';
import {
  type BmcDriveList,
  type BmcParts,
  type ComparedPartSchema,
  type FirmwareVersion,
  type Inventory,
  type MemoryModule,
  type NetworkInterface,
  type PartFactsSchema,
  PartKind,
  PartMatch,
} from '@rackwright/messages';

export type ComparedPart = MessageInitShape<typeof ComparedPartSchema>;
type PartFacts = MessageInitShape<typeof PartFactsSchema>;

/** The known lists of a host; each may be missing. */
export interface HardwareViews {
  readonly inventory: Inventory | undefined;
  readonly bmcDrives: BmcDriveList | undefined;
  readonly bmcParts: BmcParts | undefined;
}

/** BMCs round sizes; a smaller difference counts as equal. */
const sizeShareTolerated = 0.01;

/** Drives, interfaces, memory modules and firmware, in this order. */
export function comparedParts(views: HardwareViews): ComparedPart[] {
  const { inventory, bmcParts } = views;
  return [
    ...comparedDrives(views),
    ...comparedInterfaces(inventory?.interfaces ?? [], bmcParts),
    ...comparedMemory(inventory?.memoryModules ?? [], bmcParts),
    ...comparedFirmware(inventory?.firmware ?? [], bmcParts?.firmware ?? []),
  ];
}

/** What the BMC does not list, for people; empty: it lists everything. */
export function gapsOfBmc({ bmcDrives, bmcParts }: HardwareViews): string {
  const drives =
    bmcDrives === undefined
      ? ['its BMC was not asked for drives, or its protocol has no list']
      : !bmcDrives.available
        ? [`its BMC lists no drives: ${bmcDrives.unavailableReason}`]
        : bmcDrives.complete
          ? []
          : ['its BMC has more drives, or some could not be read'];
  const parts =
    bmcParts === undefined
      ? ['its BMC was not asked for other parts, or its protocol has no lists']
      : bmcParts.complete
        ? []
        : ['its BMC has more parts, or some could not be read'];
  return [...drives, ...parts].join('; ');
}

function comparedDrives({ inventory, bmcDrives }: HardwareViews): ComparedPart[] {
  const devices = (inventory?.devices ?? []).map(deviceFactsOf);
  const isListed = bmcDrives?.available === true;
  const findings = compareBmcDrives((bmcDrives?.drives ?? []).map(listedDriveOf), devices);
  const versions = new Map(bmcDrives?.drives.map((drive) => [keyOf(drive), drive.firmware]));
  const accounted = new Set<DeviceFacts>();
  const rows = findings.flatMap((finding): ComparedPart[] => {
    const bmc = factsOfListed(finding.drive, versions.get(keyOf(finding.drive)));
    const kind = PartKind.DRIVE;
    switch (finding.kind) {
      case 'notStorage':
        return [];
      case 'accounted':
        accounted.add(finding.device);
        return [both(kind, factsOfDevice(finding.device), bmc)];
      case 'behindVolume':
        return [{ kind, bmc }];
      case 'gap':
        return [{ kind, bmc, ...(inventory && { match: PartMatch.ONLY_BMC }) }];
    }
  });
  const isAll = isListed && bmcDrives.complete;
  const others = devices.filter((device) => !accounted.has(device) && isOfMachine(device));
  return [
    ...rows,
    ...others.map((device): ComparedPart => {
      const match = isAll && !device.raidVolume ? { match: PartMatch.ONLY_HOST } : {};
      return { kind: PartKind.DRIVE, host: factsOfDevice(device), ...match };
    }),
  ];
}

/** Other devices come and go, or are not part of this machine: no BMC lists them. */
function isOfMachine({ transport, removable }: DeviceFacts): boolean {
  const parts: readonly DeviceFacts['transport'][] = ['sata', 'nvme', 'sas', 'virtio', 'mmc'];
  return parts.includes(transport) && !removable;
}

function keyOf({ serial, name }: { readonly serial: string; readonly name: string }): string {
  return `${serial}\n${name}`;
}

function factsOfListed({ name, model, serial, sizeBytes }: ListedDrive, version = ''): PartFacts {
  return { name, model, serial, sizeBytes: BigInt(sizeBytes), version };
}

function factsOfDevice({ name, model, serial, sizeBytes, firmware }: DeviceFacts): PartFacts {
  return { name, model, serial, sizeBytes: BigInt(sizeBytes), version: firmware };
}

function comparedInterfaces(
  seen: readonly NetworkInterface[],
  bmcParts: BmcParts | undefined,
): ComparedPart[] {
  const factsOf = ({ name, mac }: NetworkInterface): PartFacts => ({ name, mac });
  const sameMac = (a: NetworkInterface, b: NetworkInterface): boolean =>
    a.mac !== '' && a.mac.toLowerCase() === b.mac.toLowerCase();
  const listed = bmcParts?.interfaces ?? [];
  return paired(PartKind.INTERFACE, { seen, listed, factsOf, ways: [sameMac] }, bmcParts);
}

function comparedMemory(
  seen: readonly MemoryModule[],
  bmcParts: BmcParts | undefined,
): ComparedPart[] {
  const factsOf = ({ slot, model, serial, sizeBytes }: MemoryModule): PartFacts => {
    return { name: slot, model, serial, sizeBytes };
  };
  const serialOf = ({ serial }: MemoryModule) => meaningfulSerial(serial);
  type Way = (a: MemoryModule, b: MemoryModule) => boolean;
  const sameSerial: Way = (a, b) => serialOf(a) !== undefined && serialOf(a) === serialOf(b);
  const sameSlot: Way = (a, b) => plain(a.slot) !== '' && plain(a.slot) === plain(b.slot);
  // Names of slots differ between the sides, so equal sizes have to match where no serial helps.
  const sameSize: Way = (a, b) =>
    (serialOf(a) === undefined || serialOf(b) === undefined) && a.sizeBytes === b.sizeBytes;
  const listed = bmcParts?.memoryModules ?? [];
  const ways = [sameSerial, sameSlot, sameSize];
  return paired(PartKind.MEMORY, { seen, listed, factsOf, ways }, bmcParts);
}

interface Sides<T> {
  readonly seen: readonly T[];
  readonly listed: readonly T[];
  readonly factsOf: (part: T) => PartFacts;
  /** The most reliable way first. */
  readonly ways: readonly ((a: T, b: T) => boolean)[];
}

function paired<T>(
  kind: PartKind,
  { seen, listed, factsOf, ways }: Sides<T>,
  bmcParts: BmcParts | undefined,
): ComparedPart[] {
  const free = new Set(listed);
  const partners = new Map<T, T>();
  for (const isSame of ways) {
    for (const part of seen) {
      const partner = partners.has(part) ? undefined : [...free].find((each) => isSame(part, each));
      if (partner === undefined) continue;
      free.delete(partner);
      partners.set(part, partner);
    }
  }
  // C2: a side without any part of a kind reports nothing about it.
  const isCompared = seen.length > 0 && listed.length > 0;
  const onlyHost = isCompared && bmcParts?.complete === true ? PartMatch.ONLY_HOST : undefined;
  const onlyBmc = isCompared ? PartMatch.ONLY_BMC : undefined;
  return [
    ...seen.map((part): ComparedPart => {
      const partner = partners.get(part);
      if (partner !== undefined) return both(kind, factsOf(part), factsOf(partner));
      return { kind, host: factsOf(part), ...(onlyHost && { match: onlyHost }) };
    }),
    ...[...free].map((part): ComparedPart => {
      return { kind, bmc: factsOf(part), ...(onlyBmc && { match: onlyBmc }) };
    }),
  ];
}

function comparedFirmware(
  seen: readonly FirmwareVersion[],
  listed: readonly FirmwareVersion[],
): ComparedPart[] {
  const kind = PartKind.FIRMWARE;
  const names = new Set([...seen, ...listed].map(({ name }) => name));
  return [...names].map((name): ComparedPart => {
    const [host, bmc] = [seen, listed].map((side) => side.find((each) => each.name === name));
    if (host !== undefined && bmc !== undefined)
      return both(kind, versionFacts(host), versionFacts(bmc));
    return {
      kind,
      ...(host && { host: versionFacts(host) }),
      ...(bmc && { bmc: versionFacts(bmc) }),
    };
  });
}

function versionFacts({ name, version }: FirmwareVersion): PartFacts {
  return { name, version };
}

function both(kind: PartKind, host: PartFacts, bmc: PartFacts): ComparedPart {
  const differences = differencesOf(host, bmc);
  const match = differences.length === 0 ? PartMatch.SAME : PartMatch.DIFFERS;
  return { kind, match, host, bmc, differences };
}

/** The sides write models and names differently, so these are only shown. */
function differencesOf(host: PartFacts, bmc: PartFacts): string[] {
  const found: string[] = [];
  const [own, other] = [meaningfulSerial(host.serial), meaningfulSerial(bmc.serial)];
  if (own !== undefined && other !== undefined && !isPart(own, other)) found.push('serial');
  if (!sizesAgree(host.sizeBytes ?? 0n, bmc.sizeBytes ?? 0n)) found.push('size_bytes');
  if (!sameVersion(host.version ?? '', bmc.version ?? '')) found.push('version');
  return found;
}

/** BMCs truncate serial numbers, or add a vendor prefix. */
function isPart(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return long.startsWith(short) || long.endsWith(short);
}

function sizesAgree(a: bigint, b: bigint): boolean {
  if (a === 0n || b === 0n) return true;
  const [small, large] = [Number(a), Number(b)].toSorted((x, y) => x - y) as [number, number];
  return large - small <= large * sizeShareTolerated;
}

/** One side may give fewer parts of a version, or zeros in its numbers: 2.4 and 2.04.0.1. */
export function sameVersion(a: string, b: string): boolean {
  const [short, long] = [a, b].map(wordsOf).toSorted((x, y) => x.length - y.length);
  return (short ?? []).every((word, index) => word === long?.[index]);
}

function wordsOf(version: string): string[] {
  const words = version.toLowerCase().split(/[^a-z0-9]+/u);
  return words.filter(Boolean).map((word) => word.replace(/^0+(?=.)/u, ''));
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]/gu, '');
}
