/** Listed machines and lines of the manifest, as they are stored and found. Pure. */
import { fromBinary } from '@bufbuild/protobuf';
import { meaningfulSerial } from '@rackwright/erasure';
import {
  type DiscoveredMachine,
  type ExpectedHost,
  type HostId,
  type MachineId,
  type RackName,
  store as wire,
} from '@rackwright/messages';
import type { Entry, StoreRevision } from '@rackwright/store';
import {
  type CollectionKind,
  type FoundRecords,
  type MachineTraits,
  traitKeys,
  traitsOf,
} from '../fleet-view/index.ts';
import { idOfKey } from '../records/index.ts';

export interface KeptMachine {
  readonly id: MachineId;
  readonly machine: DiscoveredMachine;
  readonly traits: MachineTraits;
  readonly revision: StoreRevision;
}

export interface KeptExpected {
  readonly id: HostId;
  readonly expected: ExpectedHost;
  readonly revision: StoreRevision;
}

/** The machine in a record, if there is one. Throws when it cannot be decoded. */
export function keptMachine({ key, value, revision }: Entry): KeptMachine | undefined {
  const { machine } = fromBinary(wire.DiscoveredMachineRecordSchema, value);
  if (machine === undefined) return undefined;
  return { id: idOfKey(key), machine, traits: traitsOfMachine(machine), revision };
}

/** The traits that identify a machine: including the MAC that it booted from. */
export function traitsOfMachine({ inventory, bootMac }: DiscoveredMachine): MachineTraits {
  return traitsOf(inventory, bootMac);
}

function keptExpected({ key, value, revision }: Entry): KeptExpected | undefined {
  const { expectedHost: expected } = fromBinary(wire.ExpectedHostRecordSchema, value);
  return expected === undefined ? undefined : { id: idOfKey(key), expected, revision };
}

/** Machines that are listed, by their traits, their BMC and their rack. */
export const listedMachines: CollectionKind<KeptMachine> = {
  prefix: 'discoveredMachines',
  keptOf: keptMachine,
  keysOf: (kept) => [rackKey(kept.machine.rack), ...keysOfMachine(kept)],
};

/** Lines of the manifest, by what they name and by their id. */
export const expectedLines: CollectionKind<KeptExpected> = {
  prefix: 'expectedHosts',
  keptOf: keptExpected,
  keysOf: ({ id, expected }) => [lineKey(id), ...keysOfLine(expected)],
};

/** The records with one of the keys, in the order of the ids; undefined: all. */
export function havingKeys<T>(found: FoundRecords<T>, keys: Iterable<string> | undefined): T[] {
  if (keys === undefined) return [...found.all()];
  const ids = new Set<string>();
  for (const key of keys) for (const id of found.idsBy(key)) ids.add(id);
  return [...ids].sort().flatMap((id) => found.get(id) ?? []);
}

/** The keys by which lines and other machines find it. */
export function keysOfMachine({ machine, traits }: Pick<KeptMachine, 'machine' | 'traits'>) {
  const { bmcAddress } = machine;
  return [...traitKeys(traits), ...(bmcAddress === '' ? [] : [`bmc ${bmcAddress}`])];
}

/** The keys by which machines find it; none once it has taken its machine. */
export function keysOfLine({ match, host }: ExpectedHost): string[] {
  if (host !== '') return [];
  const { serial, mac = '', bmcAddress = '' } = match ?? {};
  const meant = meaningfulSerial(serial);
  return [
    ...(meant === undefined ? [] : [`serial ${meant}`]),
    ...(mac === '' ? [] : [`mac ${mac}`]),
    ...(bmcAddress === '' ? [] : [`bmc ${bmcAddress}`]),
  ];
}

/** The key of the machines of a rack, "racks/RACK". */
export function rackKey(rack: RackName): string {
  return `rack ${rack}`;
}

/** The key of one line. */
export function lineKey(id: HostId): string {
  return `line ${id}`;
}
