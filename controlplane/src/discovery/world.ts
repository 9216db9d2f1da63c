/** What decisions about discovered machines rest on, as the store has it now. */
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type DiscoveredMachine,
  type ExpectedHost,
  InventorySchema,
  type Rack,
  store as wire,
} from '@rackwright/api';
import type { Entry, Revision, StateStore } from '@rackwright/store';
import { answered } from '../records/index.ts';
import { type MachineTraits, traitsOf } from './traits.ts';

/** A host, as far as a machine may turn out to be it. */
export interface KnownHost {
  readonly hostId: string;
  readonly name: string;
  readonly uid: string;
  /** "racks/RACK" */
  readonly rack: string;
  readonly bootMacs: readonly string[];
  /** Of its last inventory, or of what it said when it was accepted; undefined before. */
  readonly traits: MachineTraits | undefined;
  readonly bmcIdentity: { readonly guid: Uint8Array; readonly serial: string } | undefined;
  readonly requestIds: readonly string[];
  readonly acceptedIdentity: boolean;
  readonly hasInventory: boolean;
}

export interface KeptMachine {
  readonly id: string;
  readonly machine: DiscoveredMachine;
  readonly traits: MachineTraits;
  readonly revision: Revision;
}

export interface KeptExpected {
  readonly id: string;
  readonly expected: ExpectedHost;
  readonly revision: Revision;
}

export interface World {
  readonly hosts: readonly KnownHost[];
  readonly machines: readonly KeptMachine[];
  readonly expected: readonly KeptExpected[];
  /** By name, "racks/RACK". */
  readonly racks: ReadonlyMap<string, Rack>;
}

interface ReadFacts {
  readonly revision: Revision;
  readonly hostUid: string;
  readonly traits: MachineTraits | undefined;
}

/** Reads it all. Inventories that have not changed are not read twice. */
export class WorldReader {
  readonly #store: StateStore;
  #facts = new Map<string, ReadFacts>();

  constructor(store: StateStore) {
    this.#store = store;
  }

  /** Whether nothing is listed and nothing expected, so that there is nothing to decide. */
  async isQuiet(): Promise<boolean> {
    const lists = ['discoveredMachines', 'expectedHosts'] as const;
    const read = lists.map(async (prefix) => (await answered(this.#store.list(prefix))).entries);
    return (await Promise.all(read)).every(({ length }) => length === 0);
  }

  async read(): Promise<World> {
    const lists = ['hosts', 'facts', 'discoveredMachines', 'expectedHosts', 'racks'] as const;
    const [hosts, facts, machines, expected, racks] = await Promise.all(
      lists.map(async (prefix) => (await answered(this.#store.list(prefix))).entries),
    );
    this.#noteFacts(facts ?? []);
    return {
      hosts: (hosts ?? []).flatMap((entry) => this.#host(entry) ?? []),
      machines: (machines ?? []).flatMap((entry) => keptMachine(entry) ?? []),
      expected: (expected ?? []).flatMap((entry) => keptExpected(entry) ?? []),
      racks: new Map((racks ?? []).flatMap(rackOf)),
    };
  }

  #noteFacts(entries: readonly Entry[]): void {
    const next = new Map<string, ReadFacts>();
    for (const { key, value, revision } of entries) {
      const before = this.#facts.get(key);
      if (before?.revision === revision) {
        next.set(key, before);
        continue;
      }
      const { hostUid, inventory } = fromBinary(wire.HostFactsSchema, value);
      const traits = inventory === undefined ? undefined : traitsOf(inventory);
      next.set(key, { revision, hostUid, traits });
    }
    this.#facts = next;
  }

  #host({ key, value }: Entry): KnownHost | undefined {
    const { host, requestIds, acceptedIdentity } = fromBinary(wire.HostRecordSchema, value);
    if (host === undefined) return undefined;
    const hostId = idOfKey(key);
    const facts = this.#facts.get(`facts.${hostId}`);
    const seen = facts?.hostUid === host.uid ? facts.traits : undefined;
    const bmc = host.status?.bmcIdentity;
    return {
      hostId,
      name: host.name,
      uid: host.uid,
      rack: host.spec?.rack ?? '',
      bootMacs: host.spec?.bootMacs ?? [],
      traits: seen ?? acceptedTraits(acceptedIdentity, host.spec?.bootMacs ?? []),
      bmcIdentity: bmc === undefined ? undefined : { guid: bmc.guid, serial: bmc.serial },
      requestIds,
      acceptedIdentity: acceptedIdentity !== undefined,
      hasInventory: seen !== undefined,
    };
  }
}

function acceptedTraits(
  system: wire.HostRecord['acceptedIdentity'],
  macs: readonly string[],
): MachineTraits | undefined {
  if (system === undefined) return undefined;
  return { ...traitsOf(create(InventorySchema, { system })), macs };
}

function keptMachine({ key, value, revision }: Entry): KeptMachine | undefined {
  const { machine } = fromBinary(wire.DiscoveredMachineRecordSchema, value);
  if (machine === undefined) return undefined;
  const traits = traitsOf(machine.inventory, machine.bootMac);
  return { id: idOfKey(key), machine, traits, revision };
}

function keptExpected({ key, value, revision }: Entry): KeptExpected | undefined {
  const { expectedHost: expected } = fromBinary(wire.ExpectedHostRecordSchema, value);
  return expected === undefined ? undefined : { id: idOfKey(key), expected, revision };
}

function rackOf({ value }: Entry): [string, Rack][] {
  const { rack } = fromBinary(wire.RackRecordSchema, value);
  return rack === undefined ? [] : [[rack.name, rack]];
}

function idOfKey(key: string): string {
  return key.slice(key.indexOf('.') + 1);
}
