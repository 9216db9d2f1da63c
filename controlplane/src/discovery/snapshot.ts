/** The data for decisions about discovered machines, from the present store. */
import { create } from '@bufbuild/protobuf';
import {
  type HostId,
  type HostName,
  type HostUid,
  InventorySchema,
  type MachineId,
  type Rack,
  type RackName,
  type RequestId,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import {
  type FleetView,
  type FoundRecords,
  type MachineTraits,
  machineKeys,
  traitsOf,
} from '../fleet-view/index.ts';
import { idOf, orUnavailable, readRecord, readShared } from '../records/index.ts';
import {
  expectedLines,
  havingKeys,
  type KeptExpected,
  type KeptMachine,
  keptMachine,
  keysOfLine,
  keysOfMachine,
  listedMachines,
  rackKey,
} from './kept.ts';

/** A host, in the form for comparison with a machine. */
export interface KnownHost {
  readonly hostId: HostId;
  readonly name: HostName;
  readonly uid: HostUid;
  /** "racks/RACK" */
  readonly rack: RackName;
  readonly bootMacs: readonly string[];
  /** From its last inventory, or from its report at acceptance; undefined before. */
  readonly traits: MachineTraits | undefined;
  readonly bmcIdentity: { readonly guid: Uint8Array; readonly serial: string } | undefined;
  readonly requestIds: readonly RequestId[];
  readonly acceptedIdentity: boolean;
  readonly hasInventory: boolean;
  /** "racks/RACK rule NAME" of the rule that took it; empty: none did. */
  readonly acceptedByRule: string;
}

export interface DiscoverySnapshot {
  /**
   * In the order of their ids: the hosts that one of the given machines may be, and the hosts with
   * the id of an unused line that is similar to one.
   */
  readonly hosts: readonly KnownHost[];
  /** Whether any host has this id. */
  readonly isHost: (hostId: HostId) => boolean;
  /** The number of hosts that a rule, "racks/RACK rule NAME", has made. */
  readonly madeByRule: (rule: string) => number;
  /** The given machines, and those that share a trait or a line with one. */
  readonly machines: readonly KeptMachine[];
  /** The number of machines that a rack, "racks/RACK", lists. */
  readonly listedIn: (rack: RackName) => number;
  /** The rack of the listed machine with this id. */
  readonly rackOf: (machineId: MachineId) => RackName | undefined;
  /** Every line that shares a trait with one of the machines. */
  readonly expected: readonly KeptExpected[];
  /** By name, "racks/RACK". */
  readonly racks: ReadonlyMap<RackName, Rack>;
}

/** The machines and lines to decide about. */
export interface Subjects {
  readonly machines: readonly KeptMachine[];
  readonly lines: readonly KeptExpected[];
}

/** Finds hosts, machines and lines by index. */
export type HostFinder = Pick<FleetView, 'hostsLike' | 'row' | 'madeByRule' | 'collection'>;

/** All listed machines and expected lines, at one time. */
export interface ListedDiscovery {
  readonly machines: FoundRecords<KeptMachine>;
  readonly lines: FoundRecords<KeptExpected>;
}

/**
 * Reads everything that affects the given machines and lines; the cost does not depend on the rest.
 * The result must not be changed.
 */
export class SnapshotReader {
  readonly #store: StateStore;
  readonly #fleetView: HostFinder;

  constructor(store: StateStore, fleetView: HostFinder) {
    this.#store = store;
    this.#fleetView = fleetView;
  }

  /** Includes every write that was acknowledged before the call. */
  async listed(): Promise<ListedDiscovery> {
    const machines = await this.#fleetView.collection(listedMachines);
    return { machines, lines: await this.#fleetView.collection(expectedLines) };
  }

  async read({ machines: about, lines }: Subjects): Promise<DiscoverySnapshot> {
    const listed = await this.listed();
    const near = (machines: readonly KeptMachine[]) =>
      havingKeys(listed.lines, machines.flatMap(keysOfMachine));
    const aboutLines = byId([...lines, ...near(about)]);
    const keys = [
      ...about.flatMap(keysOfMachine),
      ...aboutLines.flatMap(({ expected }) => keysOfLine(expected)),
    ];
    const machines = byId([
      // A machine that has just been seen is not listed yet.
      ...about.flatMap(({ id }) => listed.machines.get(id) ?? []),
      ...havingKeys(listed.machines, keys),
    ]);
    const fleetView = this.#fleetView;
    // After the machines: so a machine that has become a host since is found.
    const hosts = await this.#hostsLike(about, aboutLines);
    const ofHosts = hosts.flatMap(({ hostId }) => listed.lines.get(hostId) ?? []);
    return {
      hosts,
      isHost: (hostId) => fleetView.row(hostId) !== undefined,
      madeByRule: (rule) => fleetView.madeByRule(rule),
      machines,
      listedIn: (rack) => listed.machines.countBy(rackKey(rack)),
      rackOf: (id) => listed.machines.get(id)?.machine.rack,
      expected: byId([...aboutLines, ...near(machines), ...ofHosts]),
      racks: await this.#racks(new Set(about.map(({ machine }) => machine.rack))),
    };
  }

  /** One machine, and the hosts that it may be; undefined: it is not listed. */
  async readOne(id: string) {
    const key = storeKey('discoveredMachines', id);
    const found = await orUnavailable(this.#store.get(key));
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

  async #racks(names: ReadonlySet<RackName>): Promise<ReadonlyMap<RackName, Rack>> {
    const read = [...names].map(async (name) => {
      const key = storeKey('racks', idOf(name));
      return await readRecord(this.#store, wire.RackRecordSchema, key);
    });
    const racks = (await Promise.all(read)).map((kept) => kept?.record.rack);
    return new Map(racks.flatMap((rack) => (rack === undefined ? [] : [[rack.name, rack]])));
  }

  /** From its own records, not from the index. */
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

/** Each once, in the order of their ids. */
function byId<T extends { readonly id: string }>(all: readonly T[]): T[] {
  const each = new Map(all.map((one) => [one.id, one]));
  return [...each.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

function acceptedTraits(
  system: wire.HostRecord['acceptedIdentity'],
  macs: readonly string[],
): MachineTraits | undefined {
  if (system === undefined) return undefined;
  return { ...traitsOf(create(InventorySchema, { system })), macs };
}
