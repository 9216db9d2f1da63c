/**
 * What the boot path of a rack needs to know of its hosts.
 *
 * Invariants:
 * 1. Each host is read after the list was requested, so that its record is of the revision that the
 *    list names, or newer. A host that this replica does not know yet comes with the next list.
 * 2. Only the hosts of the rack are read.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  agent,
  type HostId,
  HostState,
  type HostUid,
  type RackId,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, type StoreRevision, storeKey } from '@rackwright/store';
import {
  credentialVersions,
  fleetKey,
  type Hosts,
  netbootProblem,
  rackIdOf,
} from '../../host/index.ts';
import { orUnavailable, readShared } from '../../records/index.ts';
import { bootHost, type FleetRegistryAccess, noAccess } from '../base/messages.ts';

/** Hosts that are read at once. */
const readsAtOnce = 64;

/** The size of one rack's list, which is sent in one message of at most 4 MiB. */
const listBytesMax = 3.5 * 1024 * 1024;
/** Overhead of one host in a list. */
const frameBytes = 8;

export interface BootList {
  readonly hosts: readonly agent.BootHost[];
  /** The hosts whose images have no room in it, each with a text for people. */
  readonly leftOut: ReadonlyMap<HostUid, string>;
  /** Problems of listed images, for people. */
  readonly problems: readonly string[];
  readonly access: FleetRegistryAccess;
  /** The store's revision before the list was read (1). */
  readonly revision: StoreRevision;
}

interface BootHostEntry {
  /** Undefined: the host is being forgotten. */
  readonly host: agent.BootHost | undefined;
  /** Its size in the list. */
  readonly bytes: number;
  /** It goes before hosts that are about to be deployed. */
  readonly inService: boolean;
  readonly problem: string | undefined;
}

export class BootLists {
  readonly #store: StateStore;
  readonly #hosts: Pick<Hosts, 'hostIdsOfRack'>;
  #lastAccess: FleetRegistryAccess = noAccess;

  constructor(store: StateStore, hosts: Pick<Hosts, 'hostIdsOfRack'>) {
    this.#store = store;
    this.#hosts = hosts;
  }

  /** Throws `unavailable`. */
  async of(rackId: RackId): Promise<BootList> {
    const revision = await orUnavailable(this.#store.latestRevision());
    const hostIds = this.#hosts.hostIdsOfRack(rackId).toSorted();
    const access = await this.#access();
    const read: BootHostEntry[] = [];
    for (let at = 0; at < hostIds.length; at += readsAtOnce) {
      const some = hostIds.slice(at, at + readsAtOnce);
      const hosts = await Promise.all(some.map((hostId) => this.#read(hostId, rackId, access)));
      for (const host of hosts) if (host !== undefined) read.push(host);
    }
    return { ...listOf(read), access, revision };
  }

  /** Undefined: the host does not exist any more. */
  async #read(
    hostId: HostId,
    rackId: RackId,
    access: FleetRegistryAccess,
  ): Promise<BootHostEntry | undefined> {
    const key = storeKey('hosts', hostId);
    const record = (await readShared(this.#store, wire.HostRecordSchema, key))?.record;
    if (record === undefined || rackIdOf(record) !== rackId) return undefined;
    const host = record.forgetting ? undefined : bootHost(record, access);
    return {
      host,
      bytes: host === undefined ? 0 : toBinary(agent.BootHostSchema, host).length + frameBytes,
      inService: record.host?.status?.state === HostState.PROVISIONED,
      problem: problemOf(record, access),
    };
  }

  /** From the present fleet and credentials; the same object as long as these do not change. */
  async #access(): Promise<FleetRegistryAccess> {
    const fleet = await readShared(this.#store, wire.FleetRecordSchema, fleetKey);
    const versions = await credentialVersions({ store: this.#store }, fleet?.record);
    const sources = fleet?.record.fleet?.spec;
    const fleetRevision = fleet?.revision ?? 0;
    const last = this.#lastAccess;
    if (last.fleetRevision === fleetRevision && isSameMap(last.versions, versions)) return last;
    this.#lastAccess = { sources, versions, fleetRevision };
    return this.#lastAccess;
  }
}

/** Whether both say the same. */
export function isSameMap(a: ReadonlyMap<string, bigint>, b: ReadonlyMap<string, bigint>): boolean {
  return a.size === b.size && [...a].every(([name, version]) => b.get(name) === version);
}

function problemOf(record: wire.HostRecord, access: FleetRegistryAccess): string | undefined {
  const problem = netbootProblem(record, access.sources, access.versions);
  return problem === undefined ? undefined : `${record.host?.name}: ${problem}`;
}

type ListContents = Pick<BootList, 'hosts' | 'leftOut' | 'problems'>;

/** Every host with its MACs, and as many images as fit: hosts in service go first. Pure. */
export function listOf(
  read: readonly Pick<BootHostEntry, 'host' | 'bytes' | 'inService' | 'problem'>[],
  bytesMax = listBytesMax,
): ListContents {
  const leftOut = new Map<HostUid, string>();
  let bytes = 0;
  for (const { host, bytes: own } of read) if (host?.netboot === undefined) bytes += own;
  for (const { host, bytes: own } of read.toSorted(inServiceFirst)) {
    if (host?.netboot === undefined) continue;
    bytes += own;
    if (bytes <= bytesMax) continue;
    bytes -= own;
    leftOut.set(host.hostUid, noRoomText(host.hostName, own, bytesMax));
  }
  const hosts = read.flatMap(({ host }) => {
    if (host === undefined || !leftOut.has(host.hostUid)) return host ?? [];
    const { hostUid, hostName, macs, bootProfile } = host;
    return create(agent.BootHostSchema, { hostUid, hostName, macs, bootProfile });
  });
  const problems = read.map(({ problem }) => problem).filter((problem) => problem !== undefined);
  return { hosts, leftOut, problems: [...problems, ...leftOut.values()] };
}

function inServiceFirst(
  a: Pick<BootHostEntry, 'inService'>,
  b: Pick<BootHostEntry, 'inService'>,
): number {
  return Number(b.inService) - Number(a.inService);
}

function noRoomText(host: string, bytes: number, bytesMax: number): string {
  return (
    `what ${host} boots over the network takes ${bytes} bytes of its rack’s boot list, which has ` +
    `room for ${bytesMax}; give its hosts smaller first boots, or their registry a smaller ` +
    'ca_pem, or fewer such hosts to one rack'
  );
}
