/** What decisions about discovered machines rest on, as the store has it now. */
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type DiscoveredMachine,
  type ExpectedHost,
  type HostId,
  InventorySchema,
  type Rack,
  store as wire,
} from '@rackwright/messages';
import { type Entry, type Revision, type StateStore, storeKey } from '@rackwright/store';
import { type FleetView, type MachineTraits, machineKeys, traitsOf } from '../fleet-view/index.ts';
import { answered, idOf, idOfKey, readRecord, readShared } from '../records/index.ts';

/** A host, as far as a machine may turn out to be it. */
export interface KnownHost {
  readonly hostId: HostId;
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
  /**
   * In the order of their ids: those that a listed machine may be, or the one that is asked about,
   * and those that have the id of a line which has taken nothing yet.
   */
  readonly hosts: readonly KnownHost[];
  /** Whether any host has this id. */
  readonly isHost: (hostId: HostId) => boolean;
  /** Hosts that a rule, "racks/RACK rule NAME", has made. */
  readonly madeByRule: (rule: string) => number;
  readonly machines: readonly KeptMachine[];
  readonly expected: readonly KeptExpected[];
  /** By name, "racks/RACK". */
  readonly racks: ReadonlyMap<string, Rack>;
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
}

/** Where hosts are found without looking through all of them. */
export type HostFinder = Pick<FleetView, 'hostsLike' | 'row' | 'madeByRule'>;

/**
 * Reads what is listed, and of the hosts those that have to do with it. What has not changed is not
 * decoded twice; nobody may change what is answered.
 */
export class SnapshotReader {
  readonly #store: StateStore;
  readonly #fleetView: HostFinder;
  readonly #machines = new Decoded(keptMachine);
  readonly #lines = new Decoded(keptExpected);

  constructor(store: StateStore, fleetView: HostFinder) {
    this.#store = store;
    this.#fleetView = fleetView;
  }

  /** Whether nothing is listed and nothing expected, so that there is nothing to decide. */
  async isQuiet(): Promise<boolean> {
    const lists = ['discoveredMachines', 'expectedHosts'] as const;
    const one = { limit: 1 };
    const read = lists.map(async (each) => (await answered(this.#store.list(each, one))).entries);
    return (await Promise.all(read)).every(({ length }) => length === 0);
  }

  /** Of racks, those that have machines; also what has to do with one that was seen. */
  async read(seen?: KeptMachine): Promise<DiscoverySnapshot> {
    const lists = ['discoveredMachines', 'expectedHosts'] as const;
    const [listed, lines] = await Promise.all(
      lists.map(async (prefix) => (await answered(this.#store.list(prefix))).entries),
    );
    const machines = this.#machines.of(listed ?? []).filter((each) => each !== undefined);
    const expected = this.#lines.of(lines ?? []).filter((each) => each !== undefined);
    const about = seen === undefined ? machines : [...machines, seen];
    const racks = new Set(about.map(({ machine }) => machine.rack));
    const fleetView = this.#fleetView;
    return {
      // After the machines: what has become a host since is found.
      hosts: await this.#hostsLike(about, expected),
      isHost: (hostId) => fleetView.row(hostId) !== undefined,
      madeByRule: (rule) => fleetView.madeByRule(rule),
      machines,
      expected,
      racks: await this.#racks(racks),
    };
  }

  /** One machine, and the hosts that it may be; undefined: it is not listed. */
  async readOne(id: string) {
    const key = storeKey('discoveredMachines', id);
    const found = await answered(this.#store.get(key));
    const kept = found.kind === 'found' ? keptMachine(found) : undefined;
    return kept === undefined ? undefined : { kept, hosts: await this.#hostsLike([kept], []) };
  }

  async #hostsLike(
    machines: readonly KeptMachine[],
    lines: readonly KeptExpected[],
  ): Promise<readonly KnownHost[]> {
    const keys = machines.flatMap(({ machine }) => {
      return machineKeys(machine.inventory, machine.bootMac);
    });
    const ids = new Set(await this.#fleetView.hostsLike(new Set(keys)));
    for (const { id, expected } of lines) {
      if (expected.host === '' && this.#fleetView.row(id) !== undefined) ids.add(id);
    }
    const hosts: KnownHost[] = [];
    for (const id of [...ids].sort()) {
      const host = await this.#host(id);
      if (host !== undefined) hosts.push(host);
    }
    return hosts;
  }

  async #racks(names: ReadonlySet<string>): Promise<ReadonlyMap<string, Rack>> {
    const read = [...names].map(async (name) => {
      const key = storeKey('racks', idOf(name));
      return await readRecord(this.#store, wire.RackRecordSchema, key);
    });
    const racks = (await Promise.all(read)).map((kept) => kept?.record.rack);
    return new Map(racks.flatMap((rack) => (rack === undefined ? [] : [[rack.name, rack]])));
  }

  /** By its own records, whatever was found of it. */
  async #host(hostId: HostId): Promise<KnownHost | undefined> {
    const store = this.#store;
    const [kept, facts] = await Promise.all([
      readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId)),
      readShared(store, wire.HostFactsSchema, storeKey('facts', hostId)),
    ]);
    const { host, acceptedByRule = '', acceptedIdentity, requestIds = [] } = kept?.record ?? {};
    if (host === undefined) return undefined;
    const inventory = facts?.record.hostUid === host.uid ? facts.record.inventory : undefined;
    const bootMacs = host.spec?.bootMacs ?? [];
    const accepted = acceptedTraits(acceptedIdentity, bootMacs);
    const bmc = host.status?.bmcIdentity;
    return {
      hostId,
      name: host.name,
      uid: host.uid,
      rack: host.spec?.rack ?? '',
      bootMacs,
      traits: inventory === undefined ? accepted : traitsOf(inventory),
      bmcIdentity: bmc === undefined ? undefined : { guid: bmc.guid, serial: bmc.serial },
      requestIds,
      acceptedIdentity: acceptedIdentity !== undefined,
      hasInventory: inventory !== undefined,
      acceptedByRule,
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
