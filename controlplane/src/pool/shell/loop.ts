/**
 * The shell around `decidePool`: reads the pool and the hosts, lets it decide, writes, then acts on
 * hosts. Level-triggered, woken by changes of pools and hosts, answers of registries, and time.
 *
 * Invariants:
 * 1. Entries of the ledger are durable before the record that releases their slots; requests to
 *    hosts follow only from the durable record.
 * 2. A lost compare-and-set repeats the whole decision on the present record.
 * 3. Nothing is kept here that the store, or a registry, cannot provide again.
 * 4. No host stays claimed by a deleted pool (`orphans.ts`).
 */
import { equals } from '@bufbuild/protobuf';
import {
  asPoolUid,
  type PoolId,
  PoolSpecSchema,
  type RackId,
  type ReplicaId,
  store as wire,
} from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { Entry, StateStore, StoreRevision } from '@rackwright/store';
import type { FleetRow, FleetView } from '../../fleet-view/index.ts';
import type { Follower, StoreFollower } from '../../following/index.ts';
import {
  agentAway,
  awayFromMs,
  type Brake,
  type CallWebhook,
  destructionBrake,
} from '../../host/index.ts';
import type { ResolveImage } from '../../images/index.ts';
import { Alarms, Controller, type Passes } from '../../loop/index.ts';
import {
  deleteRecord,
  idOfKey,
  readableRecordOf,
  readShared,
  writeRecord,
  writeShared,
} from '../../records/index.ts';
import { isBeginning, notBegun } from '../decide/call-off.ts';
import { decidePool, type PoolDecision } from '../decide/decide.ts';
import type { SlotNews } from '../facts/draft-types.ts';
import { isSelected } from '../facts/seen.ts';
import { deploymentKey, poolKey, poolOfKey, poolOfName } from '../policy/names.ts';
import { sendHostRequests } from './asking.ts';
import { ImageLookups } from './image-lookups.ts';
import { endClaimsOf } from './orphans.ts';
import { Questions } from './questions.ts';
import { newsOfSlot, type PoolHosts } from './slot-run.ts';
import { type PoolSnapshot, readSnapshot } from './snapshot.ts';

/** Queries of pools about many hosts. */
export type PoolsView = Pick<
  FleetView,
  'candidates' | 'caughtUp' | 'countsBy' | 'idsBy' | 'onChange' | 'start'
>;

export interface PoolsDependencies {
  readonly store: StateStore;
  /** From the same store. */
  readonly following: StoreFollower;
  /** From the same store. */
  readonly fleetView: PoolsView;
  readonly clock: Clock;
  readonly log: Log;
  readonly hosts: PoolHosts;
  readonly resolve: ResolveImage;
  /** Sends questions to webhooks of gates; missing: they are not sent. */
  readonly callWebhook?: CallWebhook;
  /** This replica, as records name it. */
  readonly replicaId?: ReplicaId;
  readonly resyncIntervalMs: number;
  readonly retryDelayMs: number;
}

export interface ReconciledPool {
  readonly record: wire.PoolRecord;
  readonly revision: StoreRevision;
}

/** The end of one round of a pass. */
type Round =
  /** Nothing is left to do now. Undefined: the pool is deleted. */
  | { readonly kind: 'settled'; readonly pool: ReconciledPool | undefined }
  /** The record or a host has changed. */
  | { readonly kind: 'again' }
  /** A host had changed before its request. */
  | { readonly kind: 'stale' }
  /** Another writer was first (invariant 2). */
  | { readonly kind: 'overtaken' };

const schema = wire.PoolRecordSchema;
/** The most rounds of one pass: each changes the record or a host; the members bound them. */
const roundsMax = 5_000;
/** The most rounds in a row without a change, because a host changes before each request. */
const staleMax = 16;
/** Ledger entries that are known to be written; others are written again. */
const rememberedMax = 100_000;

export class Pools {
  readonly #deps: PoolsDependencies;
  readonly #controller: Controller<PoolId>;
  readonly #imageLookups: ImageLookups;
  readonly #questions: Questions;
  readonly #known = new Map<PoolId, wire.PoolRecord>();
  /** By rack: the time from which its agent counts as away. */
  readonly #absences: Alarms;
  /** By rack: what keeps work there from beginning; a key without a value: nothing. */
  readonly #brakes = new Map<RackId, Brake | undefined>();
  readonly #written = new Set<string>();

  get passes(): Passes {
    return this.#controller;
  }

  constructor(deps: PoolsDependencies) {
    this.#deps = deps;
    this.#controller = new Controller({
      ...deps,
      keyOf: String,
      fieldsOf: (poolId) => ({ pool: `pools/${poolId}` }),
      pass: (poolId) => this.#reconcile(poolId),
    });
    this.#absences = new Alarms(deps.clock);
    this.#imageLookups = new ImageLookups(deps, (poolId) => this.wake(poolId));
    this.#questions = new Questions(deps, (poolId) => this.wake(poolId));
  }

  async start(): Promise<void> {
    const { following, fleetView, resyncIntervalMs } = this.#deps;
    const { signal } = this.#controller;
    await fleetView.start();
    fleetView.onChange((before, after) => this.#hostChanged(before, after), signal);
    const pools: Follower = {
      listed: ({ entries }) => {
        const there = new Set(entries.map(({ key }) => poolOfKey(key)));
        for (const poolId of this.#known.keys()) if (!there.has(poolId)) this.#forget(poolId);
        for (const entry of entries) this.#note(entry);
      },
      changed: (change) => {
        const poolId = poolOfKey(change.key);
        if (poolId === undefined) return;
        const before = this.#known.get(poolId);
        if (change.kind === 'put') this.#note(change);
        else this.#forget(poolId);
        // A host that one pool selected may now be free for another.
        if (selectsOthers(before, this.#known.get(poolId))) this.#wakeAll();
      },
    };
    await following.follow('pools', pools, signal);
    this.#wakeOrphans(fleetView.countsBy('claim').keys());
    const racks: Follower = {
      listed: ({ entries }) => entries.forEach((entry) => this.#rackChanged(entry)),
      changed: (change) => {
        if (change.kind === 'put') this.#rackChanged(change);
        else this.#rackGone(idOfKey(change.key));
      },
    };
    await following.follow('racks', racks, signal);
    this.#controller.resync(resyncIntervalMs, () => {
      this.#wakeAll();
      this.#wakeOrphans(fleetView.countsBy('claim').keys());
    });
  }

  stop(): void {
    this.#controller.stop();
    this.#imageLookups.stop();
    this.#absences.stop();
  }

  /** Pools that this replica has seen, by id. */
  known(): ReadonlyMap<PoolId, wire.PoolRecord> {
    return this.#known;
  }

  /** Reconciles the pool soon. */
  wake(poolId: PoolId): void {
    this.#controller.wake(poolId, 'due');
  }

  /** Reconciles the pool now; resolves with the resulting pool. */
  reconcile(poolId: PoolId): Promise<ReconciledPool | undefined> {
    return this.#controller.take(poolId, () => this.#reconcile(poolId));
  }

  async #reconcile(poolId: PoolId): Promise<ReconciledPool | undefined> {
    let stale = 0;
    for (let round = 0; round < roundsMax && stale < staleMax; round++) {
      const done = await this.#round(poolId);
      switch (done.kind) {
        case 'settled':
          return done.pool;
        case 'again':
          stale = 0;
          break;
        case 'stale':
          stale += 1;
          break;
        case 'overtaken':
          break;
      }
    }
    const later = 'it is reconciled again after a backoff';
    throw new Error(`pools/${poolId}: not settled within the rounds of one pass; ${later}`);
  }

  async #round(poolId: PoolId): Promise<Round> {
    const { store, clock, hosts, log } = this.#deps;
    const kept = await readShared(store, schema, poolKey(poolId));
    if (kept === undefined) {
      this.#forget(poolId);
      await endClaimsOf(this.#deps, poolId);
      return { kind: 'settled', pool: undefined };
    }
    if (this.#controller.signal.aborted) return { kind: 'settled', pool: kept };
    const snapshot = await readSnapshot(this.#deps, kept.record, clock.nowMs());
    const resolved = this.#imageLookups.take(poolId, kept.record);
    const { news, isStale } = await this.#newsOf(kept.record, snapshot);
    const gate = this.#questions.take(poolId, snapshot.policy);
    const facts = { ...snapshot, news, nowMs: clock.nowMs(), gate, resolved };
    const step = decidePool(kept.record, facts);
    let isWritten = false;
    try {
      isWritten = await this.#write(poolKey(poolId), kept, step);
    } finally {
      if (!isWritten) {
        this.#imageLookups.putBack(poolId, resolved);
        this.#questions.putBack(poolId, gate);
      }
    }
    if (!isWritten) return { kind: 'overtaken' };
    this.#questions.put(poolId, step.questions);
    if (isStale) return { kind: 'stale' };
    if (!equals(schema, kept.record, step.record)) return { kind: 'again' };
    const asking = { hosts, log };
    const changedHosts = await sendHostRequests(asking, kept.record, snapshot, step.callOffs);
    if (changedHosts > 0) return { kind: 'again' };
    const isGone = await this.#endDeleted(poolId, kept, snapshot);
    if (!isGone) this.#controller.wakeAt(poolId, step.nextPassMs, 'due');
    return { kind: 'settled', pool: kept };
  }

  async #newsOf(
    record: wire.PoolRecord,
    { kept, hosts }: PoolSnapshot,
  ): Promise<{ readonly news: ReadonlyMap<bigint, SlotNews>; readonly isStale: boolean }> {
    const news = new Map<bigint, SlotNews>();
    const byUid = new Map(hosts.map((host) => [host.uid, host]));
    const notNow = notBegun(record, byUid, this.#deps.clock.nowMs());
    let isStale = false;
    for (const slot of record.pool?.status?.slots ?? []) {
      const host = kept.get(slot.hostUid);
      if (host === undefined) continue;
      const slotNews = await newsOfSlot(this.#deps, record, slot, host, notNow.get(slot.number));
      if (slotNews !== undefined) news.set(slot.number, slotNews);
      // Its host should have got a request, and had changed in between.
      else isStale ||= isBeginning(slot);
    }
    return { news, isStale };
  }

  /** Invariant 1. False: another writer was first. */
  async #write(key: string, kept: ReconciledPool, step: PoolDecision): Promise<boolean> {
    for (const deployment of step.deployments) await this.#keepDeployment(deployment);
    if (equals(schema, kept.record, step.record)) return true;
    const written = await writeShared(this.#deps, schema, key, step.record, kept.revision);
    if (written.kind === 'ok') this.#logChange(kept.record, step.record);
    return written.kind === 'ok';
  }

  /** Create-only: an existing entry is of the same run, and its time counts. */
  async #keepDeployment(deployment: wire.DeploymentRecord): Promise<void> {
    const { poolUid, hostUid, run } = deployment;
    const key = deploymentKey(asPoolUid(poolUid), hostUid, run);
    if (this.#written.has(key)) return;
    await writeRecord(this.#deps, wire.DeploymentRecordSchema, key, deployment, 'absent');
    if (this.#written.size >= rememberedMax) this.#written.clear();
    this.#written.add(key);
  }

  #logChange(before: wire.PoolRecord, after: wire.PoolRecord): void {
    const { log } = this.#deps;
    const pool = after.pool?.name ?? '';
    const slots = after.pool?.status?.slots ?? [];
    const had = new Set(before.pool?.status?.slots.map(({ number }) => number));
    for (const { host, number, image } of slots) {
      if (!had.has(number)) log.info({ pool, host, image }, 'slot taken');
    }
    const target = after.pool?.status?.target?.image ?? '';
    if (target !== (before.pool?.status?.target?.image ?? '')) log.info({ pool, target }, 'target');
  }

  /** A pool in deletion is deleted once it holds nothing any more. */
  async #endDeleted(poolId: PoolId, { record, revision }: ReconciledPool, { hosts }: PoolSnapshot) {
    const name = record.pool?.name;
    const holds = hosts.some(({ claimedBy }) => claimedBy === name);
    if (record.deletion === undefined || holds || record.members.length > 0) return false;
    if ((record.pool?.status?.slots ?? []).length > 0) return false;
    const gone = await deleteRecord(this.#deps, poolKey(poolId), revision);
    if (gone.kind === 'ok') this.#deps.log.info({ pool: name }, 'pool deleted');
    return gone.kind === 'ok';
  }

  #note(entry: Entry): void {
    const poolId = poolOfKey(entry.key);
    if (poolId === undefined) return;
    const record = readableRecordOf(this.#deps, schema, entry);
    if (record === undefined) return this.#forget(poolId);
    this.#known.set(poolId, record);
    this.wake(poolId);
  }

  #forget(poolId: PoolId): void {
    this.#known.delete(poolId);
    this.#imageLookups.forget(poolId);
    this.#questions.forget(poolId);
    this.#controller.forget(poolId);
  }

  #hostChanged(before: FleetRow | undefined, after: FleetRow | undefined): void {
    const rows = [before, after].flatMap((row) => (row?.kind === 'host' ? [row] : []));
    this.#wakeOrphans(rows.map(({ claim }) => claim));
    const name = `hosts/${(after ?? before)?.hostId}`;
    for (const [poolId, { pool, members }] of this.#known) {
      const isMember = members.some(({ host }) => host === name);
      const isWanted = rows.some(
        ({ rack, labels, claim }) =>
          claim === pool?.name || isSelected(pool?.spec?.hosts, { name, rack, labels }),
      );
      if (isMember || isWanted) this.wake(poolId);
    }
  }

  /** Most changes of a rack only renew that its agent is connected: those wake no pool. */
  #rackChanged(entry: Entry): void {
    const { clock } = this.#deps;
    const rackId = idOfKey(entry.key);
    const record = readableRecordOf(this.#deps, wire.RackRecordSchema, entry);
    if (record === undefined) return this.#rackGone(rackId);
    const nowMs = clock.nowMs();
    const brake = destructionBrake(record, undefined) ?? agentAway(record, nowMs);
    const isKnown = this.#brakes.has(rackId);
    const before = this.#brakes.get(rackId);
    this.#brakes.set(rackId, brake);
    if (isKnown && !isSameBrake(before, brake)) this.#wakeAll();
    const fromMs = awayFromMs(record);
    const isAhead = fromMs !== undefined && fromMs > nowMs;
    this.#absences.set(rackId, isAhead ? fromMs : undefined, () => this.#rackChanged(entry));
  }

  #rackGone(rackId: RackId): void {
    this.#brakes.delete(rackId);
    this.#absences.clear(rackId);
  }

  /** Finds pools that claim hosts and are unknown here. */
  #wakeOrphans(claims: Iterable<string>): void {
    for (const claim of claims) {
      const poolId = poolOfName(claim);
      if (poolId !== undefined && !this.#known.has(poolId)) this.wake(poolId);
    }
  }

  #wakeAll(): void {
    for (const poolId of this.#known.keys()) this.wake(poolId);
  }
}

/** Whether a pool may select other hosts than before. */
function selectsOthers(
  before: wire.PoolRecord | undefined,
  after: wire.PoolRecord | undefined,
): boolean {
  const [old, now] = [before?.pool?.spec, after?.pool?.spec];
  if (old === undefined || now === undefined) return true;
  if (before?.deletion === undefined && after?.deletion !== undefined) return true;
  return !equals(PoolSpecSchema, old, now);
}

function isSameBrake(before: Brake | undefined, now: Brake | undefined): boolean {
  return before?.kind === now?.kind && before?.sinceMs === now?.sinceMs;
}
