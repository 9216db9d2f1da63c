/**
 * The sweeper: applies the rules of `sweep-rules.ts` once to everything, then at intervals to the
 * hosts that have changed, and to a host as soon as it is removed.
 *
 * Invariants:
 * 1. Every action may be repeated, raced and interrupted anywhere; a missing record is no error.
 * 2. It reads a candidate before it reads its owner: an owner that is missing then does not exist.
 * 3. Nothing of an existing host is removed: the store is asked for the host after the candidate
 *    was found, whatever this replica has heard.
 * 4. A pass costs as much as has changed since the last one, for any number of hosts. Candidates
 *    that only need time are checked again in each pass. Everything is read at the start, and once
 *    in `passesToAll` passes, a page at a time.
 */
import {
  type HostId,
  type HostUid,
  type Run,
  RunKind,
  RunOutcome,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import type { Cancel } from '@rackwright/platform';
import { type Entry, storeKey } from '@rackwright/store';
import type { FleetRow } from '../fleet-view/index.ts';
import type { Follower, StoreFollower } from '../following/index.ts';
import {
  deleteRecord,
  groupsOf,
  orUnavailable,
  pagesOf,
  readableOnce,
  readableRecordOf,
  readRecord,
  readShared,
  writeRecord,
} from '../records/index.ts';
import type { Workflows, WorkflowsDependencies } from './loop.ts';
import { type WorkflowId, workflowKey, workflowOfKey } from './names.ts';
import { dropRuns, isOpen, keptRuns, latestRun, runsKeptMax } from './record.ts';
import { removeFinishedRun } from './remove-run.ts';
import { finishedRuns } from './snapshot.ts';
import {
  defaultSweepTiming,
  finishedToRemove,
  runsToDrop,
  type SweepTiming,
} from './sweep-rules.ts';

export interface SweeperDependencies
  extends Pick<
    WorkflowsDependencies,
    'store' | 'random' | 'clock' | 'log' | 'retryDelayMs' | 'fleetView'
  > {
  readonly following: Pick<StoreFollower, 'follow'>;
  readonly workflows: Pick<Workflows, 'wake'>;
  readonly sweep?: SweepTiming | undefined;
}

/** Records below these belong to one host, by its uid. */
const collectionsOfHosts = ['runs', 'stepOutputs'] as const;

/** A host that was removed while this was running. */
interface RemovedHost {
  readonly hostId: HostId;
  /** Passes that have handled it. */
  readonly passes: number;
}

/** Passes over a removed host: late writes may come between two of them. */
const passesForGone = 2;
/** Passes until everything is read again, to find missed changes: about a day. */
const passesToAll = 144;

export class WorkflowSweeper {
  readonly #deps: SweeperDependencies;
  readonly #timing: SweepTiming;
  /** Ids of hosts that have changed, or whose workflows have, since their last sweep. */
  #changed = new Set<HostId>();
  #isFirst = true;
  #passes = 0;
  /** By uid. */
  readonly #gone = new Map<HostUid, RemovedHost>();
  readonly #stopping = new AbortController();
  #next: Cancel | undefined;

  constructor(deps: SweeperDependencies) {
    this.#deps = deps;
    this.#timing = deps.sweep ?? defaultSweepTiming;
  }

  /** Sweeps records of hosts that were removed earlier, then goes on. */
  async start(): Promise<void> {
    const { following, fleetView } = this.#deps;
    const { signal } = this.#stopping;
    await fleetView.start();
    fleetView.onChange((before, after) => this.#hostChanged(before, after), signal);
    const workflows: Follower = {
      // The first listing is covered by the sweep at the start.
      listed: ({ entries }) => {
        if (!this.#isFirst) for (const { key } of entries) this.#workflowChanged(key);
      },
      changed: ({ key }) => this.#workflowChanged(key),
    };
    await following.follow('workflows', workflows, signal);
    this.#isFirst = false;
    this.#sweepAndGoOn(() => this.sweepAll());
  }

  stop(): void {
    this.#stopping.abort();
    this.#next?.();
  }

  /** One pass over changed hosts, and over late writes of removed hosts. */
  async sweep(): Promise<void> {
    this.#passes += 1;
    if (this.#passes % passesToAll === 0) return this.sweepAll();
    await this.#sweepLate();
    const changed = this.#changed;
    this.#changed = new Set();
    for (const hostId of [...changed]) {
      try {
        if (await this.#sweepHost(hostId)) this.#changed.add(hostId);
        changed.delete(hostId);
      } catch (error) {
        for (const left of changed) this.#changed.add(left);
        throw error;
      }
    }
  }

  /** Everything, including records of removed hosts: those below a uid that no host has. */
  async sweepAll(): Promise<void> {
    const { store, clock } = this.#deps;
    await this.#sweepLate();
    const unknown = new Map<string, Pick<Entry, 'key' | 'revision'>[]>();
    const idOfUid = new Map<HostUid, HostId>();
    for (const row of this.#deps.fleetView.rows()) {
      if (row.kind === 'host') idOfUid.set(row.uid, row.hostId);
    }
    for await (const { id: uid, entries } of groupsOf(store, clock, 'runs', 1)) {
      const hostId = idOfUid.get(uid);
      if (hostId === undefined) unknown.set(uid, entries.map(keyAndRevision));
      else if (await this.#sweepRuns(hostId, uid, this.#runsOf(entries))) this.#changed.add(hostId);
    }
    for await (const { id: uid, entries } of groupsOf(store, clock, 'stepOutputs', 1)) {
      if (idOfUid.has(uid)) continue;
      unknown.set(uid, [...(unknown.get(uid) ?? []), ...entries.map(keyAndRevision)]);
    }
    if (unknown.size > 0) await this.#removeOfNobody(unknown);
    for await (const { id: hostId, entries } of groupsOf(store, clock, 'workflows', 1)) {
      if (await this.#sweepWorkflows(hostId, entries)) this.#changed.add(hostId);
    }
  }

  /** (2), (3): the records of an existing host stay. */
  async #removeOfNobody(
    unknown: ReadonlyMap<string, readonly Pick<Entry, 'key' | 'revision'>[]>,
  ): Promise<void> {
    const { store, clock } = this.#deps;
    const there = new Set<string>();
    for await (const page of pagesOf(store, clock, 'hosts')) {
      for (const entry of page) {
        const record = readableRecordOf(this.#deps, wire.HostRecordSchema, entry);
        // Any of them may be of this host.
        if (record === undefined) return;
        there.add(record.host?.uid ?? '');
      }
    }
    for (const [uid, left] of unknown) {
      if (there.has(uid)) continue;
      for (const { key, revision } of left) await deleteRecord(this.#deps, key, revision);
    }
  }

  /** True: something of the host is removable after some time. */
  async #sweepHost(hostId: HostId): Promise<boolean> {
    const { store } = this.#deps;
    const uid = uidOf(this.#deps.fleetView.row(hostId)) ?? '';
    const { runs } = await finishedRuns(this.#deps, uid);
    const { entries } = await orUnavailable(store.list(storeKey('workflows', hostId)));
    const ofWorkflows = await this.#sweepWorkflows(hostId, entries);
    return (await this.#sweepRuns(hostId, uid, runs)) || ofWorkflows;
  }

  /** The workflows of one host. True: something of them is removable after some time. */
  async #sweepWorkflows(hostId: HostId, entries: readonly Entry[]): Promise<boolean> {
    if (entries.length === 0) return false;
    const { store, workflows } = this.#deps;
    const kept = await readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    const host = kept?.record;
    let again = false;
    for (const entry of entries) {
      const id = workflowOfKey(entry.key);
      if (id === undefined) continue;
      const record = readableRecordOf(this.#deps, wire.WorkflowRecordSchema, entry);
      if (record === undefined) continue;
      const hasOwner = host?.host?.uid === record.workflow?.status?.hostUid;
      const isOwned = host !== undefined && hasOwner;
      // The loop of workflows removes workflows and pending runs without an owner.
      if (!isOwned || isOpen(latestRun(record))) {
        workflows.wake(id);
        again = true;
      }
      if (!isOwned) continue;
      await this.#sweepWorkflow(id, host);
      again ||= keptRuns(record).some(({ state }) => state === WorkflowRunState.TIMED_OUT);
    }
    return again;
  }

  async #sweepWorkflow(id: WorkflowId, host: wire.HostRecord): Promise<void> {
    const kept = await readRecord(this.#deps.store, wire.WorkflowRecordSchema, workflowKey(id));
    if (kept === undefined) return;
    const numbers = runsToDrop(kept.record, host, this.#sweptAt());
    if (numbers.size === 0) return;
    const next = dropRuns(kept.record, numbers);
    const schema = wire.WorkflowRecordSchema;
    // After a conflict it is swept the next time.
    await writeRecord(this.#deps, schema, workflowKey(id), next, kept.revision);
  }

  /** For a host's finished runs. True: one of them is removable after some time. */
  async #sweepRuns(hostId: HostId, uid: HostUid, runs: readonly Run[]): Promise<boolean> {
    if (!mayGo(runs)) return false;
    const { store } = this.#deps;
    const { entries } = await orUnavailable(store.list(storeKey('workflows', hostId)));
    const readable = entries.flatMap(
      (entry) => readableRecordOf(this.#deps, wire.WorkflowRecordSchema, entry) ?? [],
    );
    // A workflow that cannot be decoded may still show any of the runs.
    if (readable.length < entries.length) return false;
    const workflows = readable.filter((record) => record.workflow?.status?.hostUid === uid);
    const kept = await readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    if (kept?.record.host?.uid !== uid) return false;
    const goes = new Set(finishedToRemove(runs, workflows, kept.record, this.#sweptAt()));
    for (const run of goes) await removeFinishedRun(this.#deps, uid, run.number);
    return runs.some((run) => run.outcome === RunOutcome.TIMED_OUT && !goes.has(run));
  }

  #runsOf(entries: readonly Entry[]): Run[] {
    const schema = wire.FinishedRunRecordSchema;
    return entries.flatMap((entry) => readableOnce(this.#deps, schema, entry)?.run ?? []);
  }

  #sweptAt() {
    return { nowMs: this.#deps.clock.nowMs(), timedOutShownMs: this.#timing.timedOutShownMs };
  }

  /** An unreadable record exists, but nothing is known of it. */
  #hostChanged(before: FleetRow | undefined, after: FleetRow | undefined): void {
    const { hostId = '' } = after ?? before ?? {};
    this.#changed.add(hostId);
    const uid = uidOf(before);
    if (uid === undefined || after?.kind === 'unreadable' || uid === uidOf(after)) return;
    this.#gone.set(uid, { hostId, passes: 0 });
    this.#removeAllOf(uid, hostId).catch((error: unknown) =>
      this.#deps.log.warn({ host: hostId }, 'its runs are swept later', error),
    );
  }

  #workflowChanged(key: string): void {
    const hostId = workflowOfKey(key)?.hostId;
    if (hostId !== undefined) this.#changed.add(hostId);
  }

  /** A pass of another replica may have written records of a host after they were removed here. */
  async #sweepLate(): Promise<void> {
    for (const [uid, { hostId, passes }] of [...this.#gone]) {
      const isThere = await this.#removeAllOf(uid, hostId);
      if (!isThere && passes + 1 < passesForGone) {
        this.#gone.set(uid, { hostId, passes: passes + 1 });
      } else this.#gone.delete(uid);
    }
  }

  /**
   * Removes the records of a host; true: the host exists, so nothing may be removed (3). A uid
   * keeps its host id.
   */
  async #removeAllOf(uid: HostUid, hostId: HostId): Promise<boolean> {
    const { store } = this.#deps;
    const left: Entry[] = [];
    for (const collection of collectionsOfHosts) {
      left.push(...(await orUnavailable(store.list(storeKey(collection, uid)))).entries);
    }
    const kept = await readRecord(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    if (kept?.record.host?.uid === uid) return true;
    for (const { key, revision } of left) await deleteRecord(this.#deps, key, revision);
    return false;
  }

  #sweepAndGoOn(work: () => Promise<void>): void {
    const { clock, log, retryDelayMs } = this.#deps;
    if (this.#stopping.signal.aborted) return;
    const again = (delayMs: number, next: () => Promise<void>) => {
      if (this.#stopping.signal.aborted) return;
      this.#next = clock.after(delayMs, () => this.#sweepAndGoOn(next));
    };
    work().then(
      () => again(this.#timing.sweepIntervalMs, () => this.sweep()),
      (error: unknown) => {
        log.warn({}, 'the sweep failed; it is tried again', error);
        again(Math.max(retryDelayMs, 1_000), work);
      },
    );
  }
}

/** Undefined for an absent host, or an unreadable record. */
function uidOf(row: FleetRow | undefined): HostUid | undefined {
  return row?.kind === 'host' ? row.uid : undefined;
}

/**
 * Whether the rules may remove any of a host's runs: for most hosts nothing else has to be read.
 */
function mayGo(runs: readonly Run[]): boolean {
  const counts = new Map<RunKind, number>();
  return runs.some(({ kind, outcome }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const isTimed = kind === RunKind.WORKFLOW || outcome === RunOutcome.TIMED_OUT;
    return isTimed || count > runsKeptMax;
  });
}

function keyAndRevision({ key, revision }: Entry): Pick<Entry, 'key' | 'revision'> {
  return { key, revision };
}
