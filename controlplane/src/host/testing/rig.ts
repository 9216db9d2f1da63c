/**
 * Whole replicas of the control plane on a test bench: real `Hosts`, sessions and stores in memory,
 * on a clock that the test moves. The agents' sides are plain messages (`plain-agent.ts`).
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import {
  asReplicaId,
  type HostId,
  type HostSpec,
  type HostSpecSchema,
  HostStatusSchema,
  userActor,
  store as wire,
} from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import {
  asWriteId,
  MemoryDisk,
  type MemoryStoreOptions,
  openMemoryStore,
  type StateStore,
  storeKey,
} from '@rackwright/store';
import { defaultSessionTiming } from '../../agents/base/timing.ts';
import type { SessionTrust } from '../../agents/base/trust.ts';
import { type AgentService, createAgentService } from '../../agents/stream/service.ts';
import type { AuditSink } from '../../audit/index.ts';
import { FleetView } from '../../fleet-view/index.ts';
import { StoreFollower } from '../../following/index.ts';
import { freezeShared } from '../../records/index.ts';
import { reservedValues } from '../fleet/reservations.ts';
import type { RequestOutcome } from '../pass/pass-result.ts';
import { defaultTiming } from '../pass/timing.ts';
import type { HostRequest } from '../pass/types.ts';
import type { HostsDependencies } from '../shell/dependencies.ts';
import { Hosts } from '../shell/reconcile.ts';
import { createSessionRegistry, type SessionRegistry } from '../shell/sessions.ts';
import { newHost, startMs } from './bench.ts';

export interface ReplicaOptions {
  readonly id?: string;
  readonly faults?: MemoryStoreOptions['faults'];
  readonly openCredential?: HostsDependencies['openCredential'];
  readonly resyncIntervalMs?: number;
  readonly trust?: SessionTrust;
  readonly audit?: AuditSink;
  /** How long the start may take; after that the test goes on during the start. */
  readonly startForMs?: number;
  /** It starts on a restored store: a new incarnation. */
  readonly restored?: boolean;
  /** Its watches report nothing. */
  readonly deaf?: boolean;
  /** It dies at its first pass of this crash point. */
  readonly crashAt?: string;
  /** The store as this replica sees it; for deliberately broken stores. */
  readonly wrapStore?: (store: StateStore) => StateStore;
}

export interface Replica {
  readonly hosts: Hosts;
  readonly registry: SessionRegistry;
  readonly service: AgentService;
  /** For further parts of a control plane over the same store. */
  readonly shared: ReplicaParts;
  /** Makes the store's watches fail, like a lost connection. */
  breakWatches(): void;
  request(request: HostRequest, hostId?: HostId): Promise<RequestOutcome>;
  /** Stops all its work; its writes stay. */
  kill(): void;
}

/** The base of every part of a replica. */
export interface ReplicaParts {
  readonly store: StateStore;
  readonly following: StoreFollower;
  readonly fleetView: FleetView;
  readonly clock: Clock;
  readonly log: Log;
  whenKilled(ending: () => void): void;
}

/** More writes mean a loop: the test fails instead of running forever. */
const putsMax = 5_000;
const noFault = { kind: 'none' } as const;

export class Rig {
  readonly disk = new MemoryDisk();
  /** The log, one text per line. */
  readonly lines: string[] = [];
  readonly keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly publicKey = this.keys.publicKey.export({ type: 'spki', format: 'der' });
  readonly #heap = new EventHeap();
  readonly #random = seededRandom(1);
  readonly #own = this.#process('rig');

  get clock(): Clock {
    return this.#own.clock;
  }

  /** Advances the clock, and runs everything that becomes due. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#heap.nowMs + ms;
    this.#heap.after(ms, () => {});
    await this.#heap.run(untilMs, () => false);
  }

  /** Advances the clock during `work`, and returns its result. */
  async during<T>(work: Promise<T>, ms = 1_000): Promise<T> {
    await this.advance(ms);
    return work;
  }

  async replica(options: ReplicaOptions = {}): Promise<Replica> {
    const { id = 'single', faults } = options;
    const process = this.#process(id, options.crashAt);
    const inner = await openMemoryStore({
      random: this.#random,
      disk: this.disk,
      restored: options.restored ?? false,
      faults: (call) => faults?.(call) ?? noFault,
    });
    const { wrapStore = (store: StateStore) => store } = options;
    const watched = breakable(wrapStore(inner), options.deaf === true);
    freezeShared(watched.store);
    const registry = createSessionRegistry();
    const shared = {
      store: watched.store,
      random: this.#random,
      clock: process.clock,
      log: this.#log(id),
      crashPoint: process.crashPoint,
      replicaId: asReplicaId(id),
      registry,
    };
    const { retryDelayMs } = defaultTiming;
    const following = new StoreFollower({ ...shared, retryDelayMs });
    const fleetView = new FleetView({ ...shared, retryDelayMs });
    const signStatement = (bytes: Uint8Array) =>
      sign('sha256', bytes, { key: this.keys.privateKey, dsaEncoding: 'der' });
    const hosts = new Hosts({
      ...shared,
      ...{ following, fleetView },
      timing: defaultTiming,
      signStatement,
      openCredential: options.openCredential ?? (() => ({ username: 'admin', password: 'x' })),
      resyncIntervalMs: options.resyncIntervalMs ?? 3_600_000,
    });
    const service = createAgentService({
      ...shared,
      ...{ fleetView, hosts },
      timing: defaultSessionTiming,
      ...(options.trust === undefined ? {} : { trust: options.trust }),
      ...(options.audit === undefined ? {} : { audit: options.audit }),
      identify: ({ peerAddress }) => Promise.resolve(peerAddress),
    });
    // Whatever it does after that has no effect.
    process.whenKilled(() => {
      hosts.stop();
      fleetView.stop();
      following.stop();
      void inner.close();
    });
    await this.during(hosts.start(), options.startForMs);
    return {
      hosts,
      registry,
      service,
      shared: {
        ...shared,
        following,
        fleetView,
        whenKilled: (ending) => process.whenKilled(ending),
      },
      breakWatches: watched.breakOff,
      request: (request, hostId = 'h1') =>
        this.during(hosts.request(hostId, request, { actor: userActor('test') }), 1),
      kill: () => process.kill(),
    };
  }

  /** Writes a rack with its agent's key, and the credential that every host names. */
  addRack(rackId = 'r1'): void {
    const rack = { name: `racks/${rackId}` };
    this.put(storeKey('racks', rackId), wire.RackRecordSchema, {
      rack,
      agentPublicKey: this.publicKey,
    });
    const credential = { name: 'credentials/c1', version: 1n };
    this.put(storeKey('credentials', 'c1'), wire.CredentialRecordSchema, { credential });
  }

  /** Writes a host as the operators' API would: `hosts/hN` with uid `uN`. */
  addHost(n = 1, spec: Exclude<MessageInitShape<typeof HostSpecSchema>, HostSpec> = {}): void {
    const record = newHost({
      bmc: { address: `10.0.0.${n}`, credential: 'credentials/c1' },
      bootMacs: [`52:54:00:00:00:0${n}`],
      ...spec,
    });
    const { host } = record;
    if (host?.spec === undefined) throw new Error('a new host has a spec');
    host.name = `hosts/h${n}`;
    host.uid = `u${n}`;
    for (const { key } of reservedValues(host.spec)) {
      this.put(key, wire.ReservationSchema, { holder: host.name, holderUid: host.uid });
    }
    this.put(storeKey('hosts', `h${n}`), wire.HostRecordSchema, record);
  }

  /** Writes a record directly, bypassing every replica, over any present one. */
  put<D extends DescMessage>(key: string, schema: D, message: MessageInitShape<D>): void {
    const last = this.disk.changesOf(key).at(-1);
    const expected = last === undefined || last.kind === 'delete' ? 'absent' : last.revision;
    const writeId = `rig-${this.disk.latest()}`;
    const value = toBinary(schema, create(schema, message));
    const outcome = this.disk.write({ key, value, expected, writeId: asWriteId(writeId) });
    if (outcome.kind !== 'landed') throw new Error(`${key} was not written`);
  }

  remove(key: string): void {
    const expected = this.disk.changesOf(key).at(-1)?.revision ?? 0;
    this.disk.write({ key, expected, writeId: asWriteId(`rig-${this.disk.latest()}`) });
  }

  read<D extends DescMessage>(key: string, schema: D): MessageShape<D> | undefined {
    const last = this.disk.changesOf(key).at(-1);
    return last?.kind === 'put' ? fromBinary(schema, last.value) : undefined;
  }

  record(hostId = 'h1'): wire.HostRecord {
    const record = this.read(storeKey('hosts', hostId), wire.HostRecordSchema);
    if (record === undefined) throw new Error(`there is no host ${hostId}`);
    return record;
  }

  /** The host's status; never undefined here. */
  status(hostId = 'h1') {
    return this.record(hostId).host?.status ?? create(HostStatusSchema, {});
  }

  rack(rackId = 'r1'): wire.RackRecord | undefined {
    return this.read(storeKey('racks', rackId), wire.RackRecordSchema);
  }

  /** The revision of the last write under a prefix. */
  lastRevision(prefix = ''): number {
    return Math.max(0, ...this.disk.lastChanges(prefix).map(({ revision }) => revision));
  }

  #process(name: string, crashAt?: string): SimProcess {
    return new SimProcess(name, this.#heap, startMs, (point) => point === crashAt);
  }

  #log(name: string): Log {
    return recordingLog(({ level, fields, message }) => {
      if (level === 'debug') return;
      this.lines.push(`${name} ${level} ${message} ${JSON.stringify(fields)}`);
    });
  }
}

/** A rig with one rack and its hosts. */
export function rigWith(...specs: Exclude<MessageInitShape<typeof HostSpecSchema>, HostSpec>[]) {
  const rig = new Rig();
  rig.addRack();
  for (const [index, spec] of specs.entries()) rig.addHost(index + 1, spec);
  return rig;
}

/** The store, with watches that can be made to fail. */
function breakable(inner: StateStore, deaf: boolean): { store: StateStore; breakOff: () => void } {
  let puts = 0;
  const breaks = new Set<(error: Error) => void>();
  const store: StateStore = {
    driver: inner.driver,
    isShared: inner.isShared,
    incarnation: inner.incarnation,
    survivesPowerLoss: inner.survivesPowerLoss,
    get: (key) => inner.get(key),
    list: (prefix, page) => inner.list(prefix, page),
    put: (key, value, expected, writeId) => {
      puts += 1;
      if (puts > putsMax) throw new Error('writes without end');
      return inner.put(key, value, expected, writeId);
    },
    delete: (key, expected, writeId) => inner.delete(key, expected, writeId),
    history: (key) => inner.history(key),
    historyBackwards: (key, limit, from) => inner.historyBackwards(key, limit, from),
    log: inner.log,
    latestRevision: () => inner.latestRevision(),
    presentRevision: () => inner.presentRevision(),
    close: () => inner.close(),
    async *watch(from, prefix, signal) {
      const own = new AbortController();
      const broken = new Promise<never>((_resolve, reject) => {
        breaks.add(reject);
      });
      broken.catch(() => own.abort());
      const both = signal === undefined ? own.signal : AbortSignal.any([signal, own.signal]);
      const changes = inner.watch(from, prefix, both)[Symbol.asyncIterator]();
      for (;;) {
        const next = await Promise.race([changes.next(), broken]);
        if (next.done === true) return;
        if (!deaf) yield next.value;
      }
    },
  };
  const breakOff = () => {
    for (const reject of breaks) reject(new Error('the connection to the store broke'));
    breaks.clear();
  };
  return { store, breakOff };
}
