/**
 * The sweeper: carries out the rules of `sweep-rules.ts` from time to time, and for a host as soon
 * as it is gone.
 *
 * Invariants:
 * 1. Everything that it does may be repeated, raced and cut short anywhere; what is missing is no
 *    error.
 * 2. It looks at what may go before it looks at what keeps it: what it finds without an owner has
 *    none.
 * 3. Nothing of a host that is there is removed, whatever was heard of it: that is asked of the
 *    store after what may go was found.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/api';
import type { Cancel } from '@rackwright/platform';
import { type Entry, storeKey } from '@rackwright/store';
import type { Follower, Following } from '../following/index.ts';
import {
  answered,
  deleteRecord,
  idOfKey,
  readRecord,
  sharedRecordOf,
  writeRecord,
} from '../records/index.ts';
import type { Workflows, WorkflowsDependencies } from './loop.ts';
import { type WorkflowId, workflowKey, workflowOfKey } from './names.ts';
import { dropRuns, isOpen, latestRun } from './record.ts';
import { removeFinishedRun } from './remove-run.ts';
import { finishedRuns } from './surroundings.ts';
import {
  defaultSweepTiming,
  finishedToRemove,
  runsToDrop,
  type SweepTiming,
} from './sweep-rules.ts';

export interface SweeperDependencies
  extends Pick<WorkflowsDependencies, 'store' | 'random' | 'clock' | 'log' | 'retryDelayMs'> {
  readonly following: Pick<Following, 'follow'>;
  readonly workflows: Pick<Workflows, 'wake'>;
  readonly sweep?: SweepTiming | undefined;
}

/** Records below these belong to one host, by its uid. */
const collectionsOfHosts = ['runs', 'stepOutputs'] as const;

/** A host that went while this was running. */
interface Gone {
  readonly hostId: string;
  /** Passes that have seen to it. */
  readonly passes: number;
}

/** Passes that look after a host that went: one may fall into the turn that was cut off. */
const passesForGone = 2;

export class Sweeper {
  readonly #deps: SweeperDependencies;
  readonly #timing: SweepTiming;
  /** The uids of the hosts that were there last, by host id. */
  readonly #uids = new Map<string, string>();
  /** By uid. */
  readonly #gone = new Map<string, Gone>();
  readonly #stopping = new AbortController();
  #next: Cancel | undefined;

  constructor(deps: SweeperDependencies) {
    this.#deps = deps;
    this.#timing = deps.sweep ?? defaultSweepTiming;
  }

  /** Sweeps what went while nobody was here, then goes on. */
  async start(): Promise<void> {
    const follower: Follower = {
      listed: ({ entries }) => this.#noteAll(entries),
      changed: (change) => this.#note(change.key, change.kind === 'put' ? change : undefined),
    };
    await this.#deps.following.follow('hosts', follower, this.#stopping.signal);
    this.#sweepAndGoOn(() => this.sweepGone());
  }

  stop(): void {
    this.#stopping.abort();
    this.#next?.();
  }

  /** One pass over every host, and over what was written late for those that went. */
  async sweep(): Promise<void> {
    const { store } = this.#deps;
    await this.#sweepLate();
    const workflows = (await answered(store.list('workflows'))).entries;
    const hosts = (await answered(store.list('hosts'))).entries;
    const there = new Map(hosts.map((entry) => [idOfKey(entry.key), this.#hostOf(entry)]));
    for (const { key, value } of workflows) {
      const id = workflowOfKey(key);
      if (id === undefined) continue;
      const record = fromBinary(wire.WorkflowRecordSchema, value);
      const host = there.get(id.hostId);
      const hasOwner = host?.host?.uid === record.workflow?.status?.hostUid;
      // The loop takes away what has no owner: the host's, and a pending run's.
      if (host === undefined || !hasOwner || isOpen(latestRun(record))) {
        this.#deps.workflows.wake(id);
      }
      if (host !== undefined && hasOwner) await this.#sweepWorkflow(id, host);
    }
    for (const [hostId, host] of there) await this.#sweepRuns(hostId, host);
  }

  /** What hosts left that are there no more: everything below a uid that nobody has. */
  async sweepGone(): Promise<void> {
    const { store } = this.#deps;
    for (const collection of collectionsOfHosts) {
      const { entries } = await answered(store.list(collection));
      const hosts = (await answered(store.list('hosts'))).entries;
      const uids = new Set(hosts.map((entry) => this.#hostOf(entry).host?.uid ?? ''));
      const gone = entries.filter(({ key }) => !uids.has(key.split('.')[1] ?? ''));
      for (const { key, revision } of gone) await deleteRecord(this.#deps, key, revision);
    }
    await this.sweep();
  }

  async #sweepWorkflow(id: WorkflowId, host: wire.HostRecord): Promise<void> {
    const kept = await readRecord(this.#deps.store, wire.WorkflowRecordSchema, workflowKey(id));
    if (kept === undefined) return;
    const numbers = runsToDrop(kept.record, host, this.#sweptAt());
    if (numbers.size === 0) return;
    const next = dropRuns(kept.record, numbers);
    const schema = wire.WorkflowRecordSchema;
    // Whoever was faster is swept the next time.
    await writeRecord(this.#deps, schema, workflowKey(id), next, kept.revision);
  }

  async #sweepRuns(hostId: string, host: wire.HostRecord): Promise<void> {
    const { store } = this.#deps;
    const uid = host.host?.uid ?? '';
    const runs = await finishedRuns(store, uid);
    if (runs.length === 0) return;
    const { entries } = await answered(store.list(storeKey('workflows', hostId)));
    const workflows = entries
      .map(({ value }) => fromBinary(wire.WorkflowRecordSchema, value))
      .filter((record) => record.workflow?.status?.hostUid === uid);
    for (const run of finishedToRemove(runs, workflows, host, this.#sweptAt())) {
      await removeFinishedRun(this.#deps, uid, run.number);
    }
  }

  #sweptAt() {
    return { nowMs: this.#deps.clock.nowMs(), timedOutShownMs: this.#timing.timedOutShownMs };
  }

  #noteAll(entries: readonly Entry[]): void {
    const there = new Set(entries.map(({ key }) => key));
    for (const hostId of this.#uids.keys()) {
      if (!there.has(storeKey('hosts', hostId))) this.#note(storeKey('hosts', hostId), undefined);
    }
    for (const entry of entries) this.#note(entry.key, entry);
  }

  #note(key: string, entry: Entry | undefined): void {
    const hostId = idOfKey(key);
    const before = this.#uids.get(hostId);
    const uid = entry === undefined ? undefined : this.#hostOf(entry).host?.uid;
    if (uid === undefined) this.#uids.delete(hostId);
    else this.#uids.set(hostId, uid);
    if (before === undefined || before === uid) return;
    this.#gone.set(before, { hostId, passes: 0 });
    this.#removeAllOf(before, hostId).catch((error: unknown) =>
      this.#deps.log.warn({ host: hostId, error: String(error) }, 'its runs are swept later'),
    );
  }

  #hostOf(entry: Entry): wire.HostRecord {
    return sharedRecordOf(this.#deps.store, wire.HostRecordSchema, entry);
  }

  /** Another replica's turn may have written what belongs to a host after that was removed here. */
  async #sweepLate(): Promise<void> {
    for (const [uid, { hostId, passes }] of [...this.#gone]) {
      const isThere = await this.#removeAllOf(uid, hostId);
      if (!isThere && passes + 1 < passesForGone) {
        this.#gone.set(uid, { hostId, passes: passes + 1 });
      } else this.#gone.delete(uid);
    }
  }

  /** What a host left; true: it left nothing, for it is there (3). A uid keeps its host id. */
  async #removeAllOf(uid: string, hostId: string): Promise<boolean> {
    const { store } = this.#deps;
    const left: Entry[] = [];
    for (const collection of collectionsOfHosts) {
      left.push(...(await answered(store.list(storeKey(collection, uid)))).entries);
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
        log.warn({ error: String(error) }, 'the sweep failed; it is tried again');
        again(Math.max(retryDelayMs, 1_000), work);
      },
    );
  }
}
