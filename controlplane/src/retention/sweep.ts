/**
 * Lets go what nothing refers to any more and no driver lets go by itself: abandoned resources that
 * were resolved long ago, facts of hosts whose removal was cut short by a crash, and what was
 * deployed long ago by pools that are gone.
 *
 * Invariants:
 * 1. Nothing goes that still fences a host, or that a host of the name may be about to need.
 * 2. One pass removes `removalsPerPassMax` at most; replicas may both pass, one removes.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { store as wire } from '@rackwright/api';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import type { Entry, StateStore } from '@rackwright/store';
import { answered, deleteRecord } from '../records/index.ts';

export interface RetentionDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How long a resolved abandoned resource stays, and what a pool that is gone has deployed. */
  readonly resolvedDays: number;
}

const dayMs = 86_400_000;
const passIntervalMs = 3_600_000;
/** Before the first pass: whatever starts shall not wait for it. */
const firstPassAfterMs = 60_000;
const removalsPerPassMax = 1_000;
/** A host may be in the making whose facts are there first. */
const factsAgeMinMs = dayMs;

/** Starts to sweep from time to time; the answer ends it. */
export function startRetentionSweep(deps: RetentionDependencies): Cancel {
  const { clock, log } = deps;
  let cancel: Cancel = () => {};
  let isOver = false;
  const later = (delayMs: number) => {
    if (isOver) return;
    cancel = clock.after(delayMs, () => {
      sweepOnce(deps)
        .catch((error: unknown) => log.warn({ error: String(error) }, 'a sweep did not end'))
        .finally(() => later(passIntervalMs));
    });
  };
  later(firstPassAfterMs);
  return () => {
    isOver = true;
    cancel();
  };
}

/** One pass; answers how many records it removed. */
export async function sweepOnce(deps: RetentionDependencies): Promise<number> {
  const { store } = deps;
  const abandoned = (await answered(store.list('abandonedResources'))).entries;
  const outlived = abandoned.filter((entry) => isOutlived(deps, entry));
  const facts = await orphanedFacts(deps);
  const deployed = await orphanedDeployments(deps);
  let removed = 0;
  for (const { key, revision } of [...outlived, ...facts, ...deployed].slice(
    0,
    removalsPerPassMax,
  )) {
    const gone = await deleteRecord(deps, key, revision);
    if (gone.kind === 'ok') removed += 1;
  }
  if (removed > 0) deps.log.info({ removed }, 'records that nothing refers to were removed');
  return removed;
}

/** Invariant 1: one that fences stays, resolved or not. */
function isOutlived({ clock, resolvedDays }: RetentionDependencies, { value }: Entry): boolean {
  const { resource } = fromBinary(wire.AbandonedRecordSchema, value);
  const at = resource?.resolution?.at;
  if (resource?.fencePending !== false || at === undefined) return false;
  return timestampMs(at) < clock.nowMs() - resolvedDays * dayMs;
}

async function orphanedFacts({ store, clock }: RetentionDependencies): Promise<Entry[]> {
  const facts = (await answered(store.list('facts'))).entries;
  const found: Entry[] = [];
  for (const entry of facts) {
    const host = await answered(store.get(`hosts${entry.key.slice('facts'.length)}`));
    if (host.kind === 'found') continue;
    const [last] = (await answered(store.past(entry.key, 1))).changes;
    const atMs = last?.atMs;
    if (atMs !== undefined && atMs < clock.nowMs() - factsAgeMinMs) found.push(entry);
  }
  return found;
}

/** Entries of the ledger by age, of pools that are gone alone: those of others are counted. */
async function orphanedDeployments(deps: RetentionDependencies): Promise<Entry[]> {
  const { store, clock, resolvedDays } = deps;
  const ledger = (await answered(store.list('deployments'))).entries;
  if (ledger.length === 0) return [];
  // Read after the ledger: a pool that is made meanwhile has a uid that stands nowhere there.
  const pools = (await answered(store.list('pools'))).entries;
  const uids = new Set(
    pools.map(({ value }) => fromBinary(wire.PoolRecordSchema, value).pool?.uid ?? ''),
  );
  return ledger.filter(({ value }) => {
    const { poolUid, endTime } = fromBinary(wire.DeploymentRecordSchema, value);
    if (uids.has(poolUid) || endTime === undefined) return false;
    return timestampMs(endTime) < clock.nowMs() - resolvedDays * dayMs;
  });
}
