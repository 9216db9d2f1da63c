/** The hardware of a host in words: its parts as host and BMC see them, and its cables. Pure. */
import {
  type ComparedPart,
  type LldpNeighbor,
  type NetworkInterface,
  type PartFacts,
  PartKindSchema,
  PartMatch,
} from './gen/rackwright/v1/inventory_pb.ts';
import { enumWord } from './words.ts';

/** "drive", "interface" */
export function partKindText({ kind }: Pick<ComparedPart, 'kind'>): string {
  return enumWord(PartKindSchema, kind) ?? '';
}

/** "sda, SAMSUNG, S1, 960.2 GB, firmware 2.1"; empty: this side does not list it. */
export function partText(facts: PartFacts | undefined): string {
  if (facts === undefined) return '';
  const { name, model, serial, mac, sizeBytes, version } = facts;
  const firmware = version === '' ? '' : `firmware ${version}`;
  const texts = [name, model, serial, mac, sizeText(sizeBytes), firmware];
  return texts.filter((text) => text !== '').join(', ');
}

/** Disks are sold by powers of ten, memory by powers of two. */
function sizeText(bytes: bigint): string {
  if (bytes === 0n) return '';
  const gib = 2n ** 30n;
  if (bytes % gib === 0n) return `${bytes / gib} GiB`;
  return bytes < gib
    ? `${(Number(bytes) / 1e6).toFixed(1)} MB`
    : `${(Number(bytes) / 1e9).toFixed(1)} GB`;
}

/** "same", "differs: size, version", "BMC only", "host only"; empty: not compared. */
export function partMatchText({ match, differences }: ComparedPart): string {
  if (match !== PartMatch.DIFFERS) return matchTexts[match] ?? '';
  return `differs: ${differences.map((name) => name.replace('_bytes', '')).join(', ')}`;
}

const matchTexts: Readonly<Partial<Record<PartMatch, string>>> = {
  [PartMatch.SAME]: 'same',
  [PartMatch.ONLY_HOST]: 'host only',
  [PartMatch.ONLY_BMC]: 'BMC only',
};

/** An interface, and one of the neighbours that were heard on its cable. */
export interface Cable {
  readonly card: NetworkInterface;
  readonly neighbor: LldpNeighbor | undefined;
}

/** One for each neighbour, and for each interface without one. */
export function cablesOf(interfaces: readonly NetworkInterface[]): readonly Cable[] {
  return interfaces.flatMap((card): readonly Cable[] =>
    card.neighbors.length === 0
      ? [{ card, neighbor: undefined }]
      : card.neighbors.map((neighbor) => ({ card, neighbor })),
  );
}

/** "leaf-1"; "not heard in 12 s": a switch sends every 30 s; empty: nobody has listened. */
export function switchText({ card, neighbor }: Cable): string {
  if (neighbor !== undefined) return neighbor.systemName || neighbor.chassisId;
  return card.listenedSeconds === 0 ? '' : `not heard in ${card.listenedSeconds} s`;
}
