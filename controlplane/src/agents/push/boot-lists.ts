/**
 * What the boot path of each rack must know of its hosts, read for all racks at once: a thousand
 * agents that come together would else read every host a thousand times.
 *
 * Invariant: what is answered was read after it was asked for. Who asks while as many readings are
 * under way as may be shares the next one.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { agent, HostState, store as wire } from '@rackwright/messages';
import type { Entry, StateStore } from '@rackwright/store';
import { credentialVersions, fleetKey, netbootProblem, rackIdOf } from '../../host/index.ts';
import { readShared, sharedRecordOf } from '../../records/index.ts';
import { bootHost, noAccess, type RegistryAccess } from '../base/messages.ts';

/** More than one, so that one that takes long holds up nobody. */
const readingsMax = 4;

/** Of one rack's list, which goes in one message of at most 4 MiB. */
const listBytesMax = 3.5 * 1024 * 1024;
/** Around a host in a list. */
const frameBytes = 8;

export interface BootList {
  readonly hosts: readonly agent.BootHost[];
  /** Why the image of a host is not named, by its uid: there is no room for it. */
  readonly leftOut: ReadonlyMap<string, string>;
  /** What people should know of images that are named. */
  readonly problems: readonly string[];
  readonly access: RegistryAccess;
  /** Of the store, as in `Listing`: everything up to there is in it. */
  readonly before: number;
}

interface Read {
  readonly revision: number;
  readonly access: RegistryAccess;
  readonly rackId: string;
  /** Undefined: it is being forgotten. */
  readonly host: agent.BootHost | undefined;
  /** In the list. */
  readonly bytes: number;
  /** Has its place before those that are about to be deployed. */
  readonly inService: boolean;
  readonly problem: string | undefined;
}

type ByRack = (rackId: string) => BootList;

export class BootLists {
  readonly #store: StateStore;
  #underWay = 0;
  readonly #waiting: (() => void)[] = [];
  #next: Promise<ByRack> | undefined;
  /** By key; what has not changed is not decoded again. */
  #read: ReadonlyMap<string, Read> = new Map();
  #lastAccess: RegistryAccess = noAccess;

  constructor(store: StateStore) {
    this.#store = store;
  }

  async of(rackId: string): Promise<BootList> {
    this.#next ??= this.#readNext();
    return (await this.#next)(rackId);
  }

  async #readNext(): Promise<ByRack> {
    while (this.#underWay >= readingsMax) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    // Who asks in the same moment shares it.
    await Promise.resolve();
    this.#underWay += 1;
    this.#next = undefined;
    try {
      return await this.#list();
    } finally {
      this.#underWay -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #list(): Promise<ByRack> {
    const { entries, before } = await this.#store.list('hosts');
    const access = await this.#access();
    const read = new Map(entries.map((entry) => [entry.key, this.#decoded(entry, access)]));
    this.#read = read;
    const byRack = Map.groupBy(read.values(), ({ rackId }) => rackId);
    return (rackId) => ({ ...listOf(byRack.get(rackId) ?? []), access, before });
  }

  /** As the fleet and its credentials stand now; the same object as long as they do. */
  async #access(): Promise<RegistryAccess> {
    const fleet = await readShared(this.#store, wire.FleetRecordSchema, fleetKey);
    const versions = await credentialVersions({ store: this.#store }, fleet?.record);
    const sources = fleet?.record.fleet?.spec;
    const fleetRevision = fleet?.revision ?? 0;
    const last = this.#lastAccess;
    if (last.fleetRevision === fleetRevision && isSameMap(last.versions, versions)) return last;
    this.#lastAccess = { sources, versions, fleetRevision };
    return this.#lastAccess;
  }

  #decoded(entry: Entry, access: RegistryAccess): Read {
    const { key, revision } = entry;
    const known = this.#read.get(key);
    if (known?.revision === revision && known.access === access) return known;
    const record = sharedRecordOf(this.#store, wire.HostRecordSchema, entry);
    const host = record.forgetting ? undefined : bootHost(record, access);
    const bytes = host === undefined ? 0 : toBinary(agent.BootHostSchema, host).length + frameBytes;
    return {
      ...{ revision, access, rackId: rackIdOf(record), host, bytes },
      inService: record.host?.status?.state === HostState.PROVISIONED,
      problem: problemOf(record, access),
    };
  }
}

/** Whether both say the same. */
export function isSameMap(a: ReadonlyMap<string, bigint>, b: ReadonlyMap<string, bigint>): boolean {
  return a.size === b.size && [...a].every(([name, version]) => b.get(name) === version);
}

function problemOf(record: wire.HostRecord, access: RegistryAccess): string | undefined {
  const problem = netbootProblem(record, access.sources, access.versions);
  return problem === undefined ? undefined : `${record.host?.name}: ${problem}`;
}

type Listed = Pick<BootList, 'hosts' | 'leftOut' | 'problems'>;

/**
 * Every host with its MACs, and of the images as many as fit: those in service go first. Pure.
 */
export function listOf(
  read: readonly Pick<Read, 'host' | 'bytes' | 'inService' | 'problem'>[],
  bytesMax = listBytesMax,
): Listed {
  const leftOut = new Map<string, string>();
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
    const { hostUid, hostName, macs } = host;
    return create(agent.BootHostSchema, { hostUid, hostName, macs });
  });
  const problems = read.map(({ problem }) => problem).filter((problem) => problem !== undefined);
  return { hosts, leftOut, problems: [...problems, ...leftOut.values()] };
}

function inServiceFirst(a: Pick<Read, 'inService'>, b: Pick<Read, 'inService'>): number {
  return Number(b.inService) - Number(a.inService);
}

function noRoomText(host: string, bytes: number, bytesMax: number): string {
  return (
    `what ${host} boots over the network takes ${bytes} bytes of its rack’s boot list, which has ` +
    `room for ${bytesMax}; give its hosts smaller first boots, or their registry a smaller ` +
    'ca_pem, or fewer such hosts to one rack'
  );
}
