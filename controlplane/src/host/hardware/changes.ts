/**
 * Changes of a host's hardware between two inventories. Pure.
 *
 * H1 A value that one of them cannot know is no change: an older runner lists no memory modules,
 *    and a cable's neighbor is known only after a long enough listen.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { deviceIdentity } from '@rackwright/erasure';
import {
  type Inventory,
  type LldpNeighbor,
  type MemoryModule,
  type PartChangeSchema,
  PartKind,
  type StorageDevice,
} from '@rackwright/messages';
import { isSilenceKnown } from './neighbors.ts';

export type PartChange = Required<
  Omit<MessageInitShape<typeof PartChangeSchema>, '$typeName' | '$unknown'>
>;

/** For each kind: removed parts, then added ones, then changed ones. */
export function partChanges(before: Inventory, now: Inventory): PartChange[] {
  return [
    ...comeAndGone(PartKind.DRIVE, disksOf(before), disksOf(now)),
    ...comeAndGone(PartKind.INTERFACE, interfacesOf(before), interfacesOf(now)),
    ...memoryChanges(before, now),
    ...changed(PartKind.FIRMWARE, versionsOf(before), versionsOf(now)),
    ...changed(PartKind.NEIGHBOR, neighborsOf(before), neighborsOf(now)),
  ];
}

/** "disk S1 is gone", "firmware BIOS: 1.0 is now 1.1" */
export function partChangeText({ kind, part, before, after }: PartChange): string {
  const change = `${kindTexts[kind]} ${part}`;
  if (kind === PartKind.NEIGHBOR) {
    const [was, is] = [before, after].map((each) => each || 'nothing');
    return `${change} is cabled to ${is}, and was to ${was}`;
  }
  if (after === '') return `${change} is gone`;
  return before === '' ? `${change} is new` : `${change}: ${before} is now ${after}`;
}

const kindTexts: Readonly<Record<PartKind, string>> = {
  [PartKind.UNSPECIFIED]: 'part',
  [PartKind.DRIVE]: 'disk',
  [PartKind.INTERFACE]: 'interface',
  [PartKind.MEMORY]: 'memory module',
  [PartKind.FIRMWARE]: 'firmware',
  [PartKind.NEIGHBOR]: 'interface',
};

/** The key of each part, and its description: never empty for a present part. */
type Parts = ReadonlyMap<string, string>;

function comeAndGone(kind: PartKind, before: Parts, now: Parts): PartChange[] {
  const gone = [...before].filter(([part]) => !now.has(part));
  const come = [...now].filter(([part]) => !before.has(part));
  return [
    ...gone.map(([part, old]) => ({ kind, part, before: old, after: '' })),
    ...come.map(([part, present]) => ({ kind, part, before: '', after: present })),
  ];
}

/** Changes of parts in both inventories. */
function changed(kind: PartKind, before: Parts, now: Parts): PartChange[] {
  return [...now].flatMap(([part, after]) => {
    const earlier = before.get(part);
    if (earlier === undefined || earlier === after) return [];
    return [{ kind, part, before: earlier, after }];
  });
}

function disksOf({ devices }: Inventory): Parts {
  const fixed = devices.filter(({ removable }) => !removable);
  return new Map(fixed.map((device) => [diskKey(device), device.model || 'disk']));
}

function diskKey(device: StorageDevice): string {
  return deviceIdentity(device) || device.device;
}

function interfacesOf({ interfaces }: Inventory): Parts {
  const named = interfaces.filter(({ mac }) => mac !== '');
  return new Map(named.map(({ mac, name }) => [mac.toLowerCase(), name || 'interface']));
}

function memoryChanges(before: Inventory, now: Inventory): PartChange[] {
  // H1: a list without memory modules means that the runner does not report them.
  if (before.memoryModules.length === 0 || now.memoryModules.length === 0) return [];
  const partsOf = (modules: readonly MemoryModule[]) => new Map(modules.map(moduleEntry));
  return comeAndGone(PartKind.MEMORY, partsOf(before.memoryModules), partsOf(now.memoryModules));
}

/** Serial numbers of modules are not always unique or present; a slot holds one module. */
function moduleEntry({ slot, serial, sizeBytes }: MemoryModule): [string, string] {
  const part = [serial, slot].filter((each) => each !== '').join(' in ');
  return [part, `${Number(sizeBytes >> 20n)} MiB`];
}

function versionsOf({ firmware, devices }: Inventory): Parts {
  const disks = devices.filter(({ removable, firmware: version }) => !removable && version !== '');
  return new Map([
    ...firmware.map(({ name, version }): [string, string] => [name, version]),
    ...disks.map((device): [string, string] => [diskKey(device), device.firmware]),
  ]);
}

function neighborsOf({ interfaces }: Inventory): Parts {
  const known = interfaces.filter((each) => each.mac !== '' && isSilenceKnown(each));
  return new Map(
    known.map(({ mac, neighbors }) => [
      mac.toLowerCase(),
      neighbors.map(neighborText).toSorted().join(', '),
    ]),
  );
}

function neighborText({ systemName, chassisId, portId }: LldpNeighbor): string {
  return `${systemName || chassisId} ${portId}`;
}
