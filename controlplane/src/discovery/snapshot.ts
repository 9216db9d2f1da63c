/** What decisions about discovered machines rest on, as the store has it now. */
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type DiscoveredMachine,
  type ExpectedHost,
  type Host,
  InventorySchema,
  type Rack,
  store as wire,
} from '@rackwright/messages';
import { type Entry, type Revision, type StateStore, storeKey } from '@rackwright/store';
import { answered, idOf, idOfKey, readRecord } from '../records/index.ts';
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
  /** "racks/RACK rule NAME" of the rule that took it; empty: none did. */
  readonly acceptedByRule: string;
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

export interface DiscoverySnapshot {
  readonly hosts: readonly KnownHost[];
  readonly machines: readonly KeptMachine[];
  readonly expected: readonly KeptExpected[];
  /** By name, "racks/RACK". */
  readonly racks: ReadonlyMap<string, Rack>;
}

interface ReadFacts {
  readonly hostUid: string;
  readonly traits: MachineTraits | undefined;
}

interface ReadOnce<T> {
  readonly revision: Revision;
  readonly value: T;
}

/** What was made of records, by key; one that has not changed is not decoded again. */
class Decoded<T> {
  readonly #decode: (entry: Entry) => T;
  #kept: Map<string, ReadOnce<T>> = new Map();

  constructor(decode: (entry: Entry) => T) {
    this.#decode = decode;
  }

  /** In the order of the entries; what is not among them is forgotten. */
  of(entries: readonly Entry[]): T[] {
    const next: Map<string, ReadOnce<T>> = new Map();
    for (const entry of entries) {
      const before = this.#kept.get(entry.key);
      const value = before?.revision === entry.revision ? before.value : this.#decode(entry);
      next.set(entry.key, { revision: entry.revision, value });
    }
    this.#kept = next;
    return [...next.values()].map(({ value }) => value);
  }

  get(key: string): T | undefined {
    return this.#kept.get(key)?.value;
  }
}

/** Reads it all. What has not changed is not decoded twice; nobody may change what is answered. */
export class SnapshotReader {
  readonly #store: StateStore;
  readonly #facts = new Decoded(factsOf);
  readonly #hosts = new Decoded(hostRecordOf);
  readonly #machines = new Decoded(keptMachine);
  readonly #lines = new Decoded(keptExpected);

  constructor(store: StateStore) {
    this.#store = store;
  }

  /** Whether nothing is listed and nothing expected, so that there is nothing to decide. */
  async isQuiet(): Promise<boolean> {
    const lists = ['discoveredMachines', 'expectedHosts'] as const;
    const one = { limit: 1 };
    const read = lists.map(async (each) => (await answered(this.#store.list(each, one))).entries);
    return (await Promise.all(read)).every(({ length }) => length === 0);
  }

  /** Of racks, those that have machines and this one ("racks/RACK"). */
  async read(rack = ''): Promise<DiscoverySnapshot> {
    const lists = ['hosts', 'facts', 'discoveredMachines', 'expectedHosts'] as const;
    const [hosts, facts, listed, expected] = await Promise.all(
      lists.map(async (prefix) => (await answered(this.#store.list(prefix))).entries),
    );
    this.#facts.of(facts ?? []);
    const machines = this.#machines.of(listed ?? []).filter((each) => each !== undefined);
    const racks = new Set(machines.map(({ machine }) => machine.rack));
    return {
      hosts: this.#hosts.of(hosts ?? []).flatMap((read) => this.#host(read) ?? []),
      machines,
      expected: this.#lines.of(expected ?? []).filter((each) => each !== undefined),
      racks: await this.#racks(rack === '' ? racks : racks.add(rack)),
    };
  }

  async #racks(names: ReadonlySet<string>): Promise<ReadonlyMap<string, Rack>> {
    const read = [...names].map(async (name) => {
      const key = storeKey('racks', idOf(name));
      return await readRecord(this.#store, wire.RackRecordSchema, key);
    });
    const racks = (await Promise.all(read)).map((kept) => kept?.record.rack);
    return new Map(racks.flatMap((rack) => (rack === undefined ? [] : [[rack.name, rack]])));
  }

  #host({ hostId, host, acceptedByRule, acceptedIdentity, requestIds }: ReadHost) {
    if (host === undefined) return undefined;
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
      acceptedByRule,
    } satisfies KnownHost;
  }
}

interface ReadHost
  extends Pick<wire.HostRecord, 'acceptedByRule' | 'acceptedIdentity' | 'requestIds'> {
  readonly hostId: string;
  readonly host: Host | undefined;
}

/** No more of the record than is asked for: it is kept. */
function hostRecordOf({ key, value }: Entry): ReadHost {
  const record = fromBinary(wire.HostRecordSchema, value);
  const { host, acceptedByRule, acceptedIdentity, requestIds } = record;
  return { hostId: idOfKey(key), host, acceptedByRule, acceptedIdentity, requestIds };
}

function factsOf({ value }: Entry): ReadFacts {
  const { hostUid, inventory } = fromBinary(wire.HostFactsSchema, value);
  const traits = inventory === undefined ? undefined : traitsOf(inventory);
  return { hostUid, traits };
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
