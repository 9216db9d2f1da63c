/**
 * What the boot path knows of the rack's hosts: in memory, with a copy on disk so that hosts boot
 * while the control plane is away. Acknowledged once it is both in force and on disk.
 *
 * B1 Within one incarnation of the store no older generation takes the place of a newer one, not
 *    after a restart either: a replica that is behind must not bring back a host that is gone.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  agent,
  asRevision,
  type HostName,
  type HostUid,
  type Incarnation,
  type OperationId,
  type Revision,
} from '@rackwright/messages';
import type { Disk, Log } from '@rackwright/platform';
import type { JournalState } from '../journal/index.ts';

/** The boot path's state (see agent/src/boot). Objects are replaced, never changed. */
export interface BootState {
  readonly snapshot: {
    readonly generation: number;
    readonly hosts: readonly {
      readonly hostUid: HostUid;
      readonly hostName: HostName;
      readonly macs: readonly string[];
      readonly netboot?: boolean;
      readonly bootProfile?: string;
    }[];
  };
  readonly grants: readonly {
    readonly hostUid: HostUid;
    readonly operationId: OperationId;
    readonly bootToken: string;
    readonly openedAtMs: number;
    readonly expiresAtMs: number;
  }[];
  /** Latest wall time written to the journal: expiry uses the later of this and the clock. */
  readonly writtenAtMs: number;
}

type OnNetboots = (netboots: ReadonlyMap<HostUid, agent.Deployment>) => void;

const ownerOnlyMode = 0o600;

export class KeptBootSnapshots {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #log: Log;
  #snapshot: BootState['snapshot'] = { generation: 0, hosts: [] };
  #current: agent.BootSnapshot = create(agent.BootSnapshotSchema);
  #netboots: ReadonlyMap<HostUid, agent.Deployment> = new Map();
  readonly #onNetboots: OnNetboots;

  /**
   * `onNetboots`: receives what hosts boot over the network, by their uid, at each new snapshot.
   */
  constructor(disk: Disk, path: string, log: Log, onNetboots: OnNetboots = () => {}) {
    this.#disk = disk;
    this.#path = path;
    this.#log = log;
    this.#onNetboots = onNetboots;
  }

  /** The netboots of hosts, by their uid. */
  get netboots(): ReadonlyMap<HostUid, agent.Deployment> {
    return this.#netboots;
  }

  /** The same object until a snapshot changes something. */
  get snapshot(): BootState['snapshot'] {
    return this.#snapshot;
  }

  /** The store's position of the snapshot in force. */
  get position(): { readonly incarnation: Incarnation; readonly revision: Revision } {
    const { incarnation, generation } = this.#current;
    return { incarnation, revision: asRevision(generation) };
  }

  /**
   * Reads the snapshot of the previous start. A copy that is gone or unreadable is fetched again.
   */
  async load(): Promise<void> {
    try {
      const bytes = await this.#disk.read(this.#path);
      if (bytes !== undefined) this.#use(fromBinary(agent.BootSnapshotSchema, bytes));
    } catch (error) {
      this.#log.warn({}, 'the kept boot snapshot cannot be read', error);
    }
  }

  /**
   * Puts a snapshot of the store's `incarnation` in force at once, unless it is older than the one
   * in force (B1). Resolves with whether it is in force and on disk.
   */
  async apply(snapshot: agent.BootSnapshot, incarnation: Incarnation): Promise<boolean> {
    const { generation, incarnation: counted } = this.#current;
    if (counted === incarnation && snapshot.generation < generation) {
      const fields = { generation: String(snapshot.generation), inForce: String(generation) };
      this.#log.warn(fields, 'ignored a boot snapshot that is older than the one in force');
      return false;
    }
    this.#use(create(agent.BootSnapshotSchema, { ...snapshot, incarnation }));
    return this.#keep();
  }

  /**
   * The next snapshot is in force with any generation: a person has accepted an older store, or the
   * agent has lost its memory of the store that the present snapshot came from.
   */
  async startOver(): Promise<void> {
    if (this.#current.generation === 0n) return;
    this.#use(create(agent.BootSnapshotSchema, { ...this.#current, generation: 0n }));
    await this.#keep();
  }

  /** Takes a host out. Resolves with whether the copy on disk has forgotten it as well. */
  async forgetHost(hostUid: HostUid): Promise<boolean> {
    const hosts = this.#current.hosts.filter((host) => host.hostUid !== hostUid);
    if (hosts.length === this.#current.hosts.length) return true;
    this.#use(create(agent.BootSnapshotSchema, { ...this.#current, hosts }));
    return this.#keep();
  }

  #use(snapshot: agent.BootSnapshot): void {
    this.#current = snapshot;
    this.#snapshot = {
      generation: Number(snapshot.generation),
      hosts: snapshot.hosts.map(({ hostUid, hostName, macs, netboot, bootProfile }) => ({
        ...{ hostUid, hostName, macs },
        ...(netboot === undefined ? {} : { netboot: true }),
        ...(bootProfile === '' ? {} : { bootProfile }),
      })),
    };
    this.#netboots = new Map(
      snapshot.hosts.flatMap(({ hostUid, netboot }) => {
        return netboot === undefined ? [] : [[hostUid, netboot] as const];
      }),
    );
    this.#onNetboots(this.#netboots);
  }

  async #keep(): Promise<boolean> {
    try {
      const bytes = toBinary(agent.BootSnapshotSchema, this.#current);
      await this.#disk.writeAtomic(this.#path, bytes, ownerOnlyMode);
      return true;
    } catch (error) {
      this.#log.error({}, 'the boot snapshot is in force but not on disk', error);
      return false;
    }
  }
}

/** Remembers the last answer: the boot path sees new objects only when something has changed. */
export function makeBootState(
  snapshots: KeptBootSnapshots,
  state: () => JournalState,
  grants: () => BootState['grants'],
): () => BootState {
  let seen: JournalState['grants'] | undefined;
  let memory: BootState | undefined;
  return () => {
    const { grants: journalled, latestTimeMs } = state();
    const { snapshot } = snapshots;
    const same = memory?.snapshot === snapshot && seen === journalled;
    if (memory !== undefined && same && memory.writtenAtMs === latestTimeMs) return memory;
    const kept = memory !== undefined && seen === journalled ? memory.grants : grants();
    seen = journalled;
    memory = { snapshot, grants: kept, writtenAtMs: latestTimeMs };
    return memory;
  };
}
