/**
 * What the boot path of each rack must know of its hosts, read for all racks at once: a thousand
 * agents that come together would else read every host a thousand times.
 *
 * Invariant: what is answered was read after it was asked for. Who asks while as many readings are
 * under way as may be shares the next one.
 */
import { type agent, store as wire } from '@rackwright/api';
import type { Entry, StateStore } from '@rackwright/store';
import { credentialVersions, fleetKey, rackIdOf } from '../host/index.ts';
import { readShared, sharedRecordOf } from '../records/index.ts';
import { bootHost, type RegistryAccess } from './messages.ts';

/** More than one, so that one that takes long holds up nobody. */
const readingsMax = 4;

export interface BootList {
  readonly hosts: readonly agent.BootHost[];
  /** Of the store, as in `Listing`: everything up to there is in it. */
  readonly before: number;
}

interface Read {
  readonly revision: number;
  readonly access: RegistryAccess;
  readonly rackId: string;
  /** Undefined: it is being forgotten. */
  readonly host: agent.BootHost | undefined;
}

type ByRack = (rackId: string) => BootList;

export class BootLists {
  readonly #store: StateStore;
  #underWay = 0;
  readonly #waiting: (() => void)[] = [];
  #next: Promise<ByRack> | undefined;
  /** By key; what has not changed is not decoded again. */
  #read: ReadonlyMap<string, Read> = new Map();
  /** The fleet's revision of the last access. */
  #fleet = 0;
  #lastAccess: RegistryAccess = { registries: undefined, versions: new Map() };

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
    return (rackId) => ({ hosts: hostsOf(byRack.get(rackId) ?? []), before });
  }

  /** As the fleet and its credentials stand now; the same object as long as they do. */
  async #access(): Promise<RegistryAccess> {
    const fleet = await readShared(this.#store, wire.FleetRecordSchema, fleetKey);
    const versions = await credentialVersions({ store: this.#store }, fleet?.record);
    const registries = fleet?.record.fleet?.spec?.registries;
    const revision = fleet?.revision ?? 0;
    const isSame = this.#fleet === revision && isSameMap(this.#lastAccess.versions, versions);
    if (!isSame) this.#lastAccess = { registries, versions };
    this.#fleet = revision;
    return this.#lastAccess;
  }

  #decoded(entry: Entry, access: RegistryAccess): Read {
    const { key, revision } = entry;
    const known = this.#read.get(key);
    if (known?.revision === revision && known.access === access) return known;
    const record = sharedRecordOf(this.#store, wire.HostRecordSchema, entry);
    const host = record.forgetting ? undefined : bootHost(record, access);
    return { revision, access, rackId: rackIdOf(record), host };
  }
}

function isSameMap(a: ReadonlyMap<string, bigint>, b: ReadonlyMap<string, bigint>): boolean {
  return a.size === b.size && [...a].every(([name, version]) => b.get(name) === version);
}

function hostsOf(read: readonly Read[]): agent.BootHost[] {
  return read.map(({ host }) => host).filter((host) => host !== undefined);
}
