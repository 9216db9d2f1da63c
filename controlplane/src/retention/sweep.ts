/**
 * Removes records that nothing refers to any more and that no driver removes: abandoned resources
 * that were resolved long ago, facts of hosts whose removal a crash interrupted, old entries of
 * deploy ledgers, and pending deliveries of deleted event sinks. Old entries of deleted pools are
 * removed, and those of other pools are merged into one.
 *
 * Invariants:
 * 1. No record is removed that still fences a host, or that a host with the same name may be about
 *    to need. A host with an unreadable record may be any host.
 * 2. One pass removes `removalsPerPassMax` at most; replicas may both pass, one removes.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type HostUid, store as wire } from '@rackwright/messages';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import type { Entry, StateStore } from '@rackwright/store';
import type { FleetView } from '../fleet-view/index.ts';
import { digestInImage, foldsOf, type LedgerEntry, type LedgerFold } from '../pool/index.ts';
import {
  deleteRecord,
  idOfKey,
  orUnavailable,
  pagesOf,
  sharedRecordOf,
  writeRecord,
} from '../records/index.ts';

export interface RetentionDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The existing hosts. */
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'row' | 'rows' | 'unreadableCount'>;
  /** How long a resolved abandoned resource stays, and each entry of the deploy ledger. */
  readonly resolvedDays: number;
}

const dayMs = 86_400_000;
const passIntervalMs = 3_600_000;
/** Before the first pass: the start of the process does not wait for it. */
const firstPassAfterMs = 60_000;
const removalsPerPassMax = 1_000;
/** During the creation of a host its facts may exist before its record. */
const factsAgeMsMin = dayMs;

/** Starts to sweep at intervals; the returned function ends it. */
export function startRetentionSweep(deps: RetentionDependencies): Cancel {
  const { clock, log } = deps;
  let cancel: Cancel = () => {};
  let isOver = false;
  const later = (delayMs: number) => {
    if (isOver) return;
    cancel = clock.after(delayMs, () => {
      sweepOnce(deps)
        .catch((error: unknown) => log.warn({}, 'a sweep did not end', error))
        .finally(() => later(passIntervalMs));
    });
  };
  later(firstPassAfterMs);
  return () => {
    isOver = true;
    cancel();
  };
}

/** One pass; returns how many records it removed. */
export async function sweepOnce(deps: RetentionDependencies): Promise<number> {
  const { store } = deps;
  const abandoned = (await orUnavailable(store.list('abandonedResources'))).entries;
  const outlived = abandoned.filter((entry) => isOutlived(deps, entry));
  const facts = await orphanedFacts(deps);
  const ledger = await readLedgers(deps);
  const deployed = orphanedDeployments(deps, ledger);
  const undelivered = await orphansOfSinks(deps);
  let removed = 0;
  for (const { key, revision } of [...outlived, ...facts, ...deployed, ...undelivered].slice(
    0,
    removalsPerPassMax,
  )) {
    const gone = await deleteRecord(deps, key, revision);
    if (gone.kind === 'ok') removed += 1;
  }
  removed += await foldLedgers(deps, ledger, removalsPerPassMax - removed);
  if (removed > 0) deps.log.info({ removed }, 'records that nothing refers to were removed');
  return removed;
}

/** Invariant 1: a resource that fences stays, resolved or not. */
function isOutlived(deps: RetentionDependencies, { value }: Entry): boolean {
  const { resource } = fromBinary(wire.AbandonedRecordSchema, value);
  const at = resource?.resolution?.at;
  if (resource?.fencePending !== false || at === undefined) return false;
  return timestampMs(at) < oldBeforeMs(deps);
}

async function orphanedFacts({
  store,
  clock,
  fleetView,
}: RetentionDependencies): Promise<Pick<Entry, 'key' | 'revision'>[]> {
  await fleetView.caughtUp();
  const found: Pick<Entry, 'key' | 'revision'>[] = [];
  for await (const page of pagesOf(store, clock, 'facts')) {
    for (const { key, revision } of page) {
      if (fleetView.row(idOfKey(key)) !== undefined) continue;
      const host = await orUnavailable(store.get(`hosts${key.slice('facts'.length)}`));
      if (host.kind === 'found') continue;
      const [last] = (await orUnavailable(store.historyBackwards(key, 1))).changes;
      const atMs = last?.atMs;
      if (atMs !== undefined && atMs < clock.nowMs() - factsAgeMsMin) found.push({ key, revision });
    }
    if (found.length >= removalsPerPassMax) break;
  }
  return found;
}

/** Cursors and dead letters that a crash, or a delivery in progress, has left. */
async function orphansOfSinks({ store }: RetentionDependencies): Promise<Entry[]> {
  const left: Entry[] = [];
  for (const prefix of ['eventCursors', 'deadLetters']) {
    left.push(...(await orUnavailable(store.list(prefix))).entries);
  }
  if (left.length === 0) return [];
  // Read after them: a sink that is created in the meantime has a uid that none of them has.
  const sinks = (await orUnavailable(store.list('eventSinks'))).entries.map(
    ({ value }) => fromBinary(wire.EventSinkRecordSchema, value).eventSink?.uid,
  );
  return left.filter(({ key }) => !sinks.includes(key.split('.')[1]));
}

/** The deploy ledgers by the uid of their pool, and the pools by theirs. */
interface Ledgers {
  readonly byPool: ReadonlyMap<string, readonly LedgerEntry[]>;
  /** Read after the ledger: a pool that is created in the meantime has a uid that no entry has. */
  readonly pools: ReadonlyMap<string, wire.PoolRecord>;
}

async function readLedgers({ store }: RetentionDependencies): Promise<Ledgers> {
  const { entries } = await orUnavailable(store.list('deployments'));
  if (entries.length === 0) return { byPool: new Map(), pools: new Map() };
  const ledger = entries.map(({ key, revision, value }) => {
    return { key, revision, record: fromBinary(wire.DeploymentRecordSchema, value) };
  });
  const pools = (await orUnavailable(store.list('pools'))).entries.map((entry) => {
    const record = sharedRecordOf(store, wire.PoolRecordSchema, entry);
    return [record.pool?.uid ?? '', record] as const;
  });
  return { byPool: Map.groupBy(ledger, ({ record }) => record.poolUid), pools: new Map(pools) };
}

/** By age, only for deleted pools: the entries of others are limited by number. */
function orphanedDeployments(deps: RetentionDependencies, { byPool, pools }: Ledgers) {
  const beforeMs = oldBeforeMs(deps);
  const orphaned = [...byPool].filter(([uid]) => !pools.has(uid)).flatMap(([, each]) => each);
  return orphaned.filter(({ record: { endTime } }) => {
    return endTime !== undefined && timestampMs(endTime) < beforeMs;
  });
}

/** Returns how many entries were removed. */
async function foldLedgers(
  deps: RetentionDependencies,
  { byPool, pools }: Ledgers,
  removalsMax: number,
): Promise<number> {
  const living = [...byPool].filter(([uid]) => pools.has(uid));
  if (living.length === 0) return 0;
  const { fleetView } = deps;
  // Read after the ledger: each of its existing hosts has a row.
  await fleetView.caughtUp();
  if (fleetView.unreadableCount > 0) return 0;
  const hostUids = new Set<HostUid>();
  const digestsInUse = new Set<string>();
  for (const { pool } of pools.values()) digestsInUse.add(pool?.status?.target?.digest ?? '');
  for (const row of fleetView.rows()) {
    if (row.kind !== 'host') continue;
    hostUids.add(row.uid);
    digestsInUse.add(digestInImage(row.image));
  }
  const facts = { beforeMs: oldBeforeMs(deps), hostUids, digestsInUse };
  let removed = 0;
  for (const [, ledger] of living) {
    for (const fold of foldsOf(ledger, { ...facts, removalsMax: removalsMax - removed })) {
      removed += await foldNow(deps, fold);
    }
    if (removed >= removalsMax) break;
  }
  return removed;
}

/** Entries that another replica has merged in the meantime are left for the next pass. */
async function foldNow(
  deps: RetentionDependencies,
  { write, removals }: LedgerFold,
): Promise<number> {
  if (write !== undefined) {
    const { key, record, expected } = write;
    const schema = wire.DeploymentRecordSchema;
    const written = await writeRecord(deps, schema, key, record, expected);
    if (written.kind === 'conflict') return 0;
  }
  let removed = 0;
  for (const { key, revision } of removals) {
    const gone = await deleteRecord(deps, key, revision);
    if (gone.kind === 'ok') removed += 1;
  }
  return removed;
}

function oldBeforeMs({ clock, resolvedDays }: RetentionDependencies): number {
  return clock.nowMs() - resolvedDays * dayMs;
}
