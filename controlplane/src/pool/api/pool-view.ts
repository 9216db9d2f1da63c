/** Pools in API form: joined with their hosts and their ledger. */
import { fromBinary } from '@bufbuild/protobuf';
import {
  type Explanation,
  notFound,
  type Pool,
  type PoolId,
  type RequestId,
  store as wire,
} from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import type { RpcDependencies } from '../../call/ports.ts';
import { formatPosition } from '../../call/position.ts';
import { hasApplied, orUnavailable, readRecord } from '../../records/index.ts';
import {
  type PoolSnapshot,
  type PoolViewInputs,
  poolKey,
  poolUidOf,
  readLedger,
  readSnapshot,
  type SnapshotOf,
  shownPool,
  withPool,
} from '../index.ts';

const schema = wire.PoolRecordSchema;

export interface KeptPool {
  readonly record: wire.PoolRecord;
  readonly revision: StoreRevision;
}

/** Throws `notFound`. */
export async function existingPool({ store }: RpcDependencies, poolId: PoolId): Promise<KeptPool> {
  const kept = await readRecord(store, schema, poolKey(poolId));
  if (kept === undefined) throw notFound(`pools/${poolId}`);
  return kept;
}

/** The last version of a deleted pool that this request had changed; undefined: none. */
export async function deletedPoolOfRequest(
  { store }: RpcDependencies,
  poolId: PoolId,
  requestId: RequestId,
): Promise<KeptPool | undefined> {
  const changes = await orUnavailable(store.history(poolKey(poolId)));
  for (const change of changes.toReversed()) {
    if (change.kind !== 'put') continue;
    const record = fromBinary(schema, change.value);
    if (hasApplied(record, requestId)) return { record, revision: change.revision };
  }
  return undefined;
}

/** The inputs of a pool's views; `snapshotOf` is read once for several pools. */
export async function readPoolView(
  deps: RpcDependencies,
  record: wire.PoolRecord,
  snapshotOf?: SnapshotOf,
): Promise<PoolViewInputs & Pick<PoolSnapshot, 'others'>> {
  const { store, clock } = deps;
  const [{ hosts, others }, ledger] = await Promise.all([
    snapshotOf?.(record) ?? readSnapshot(deps, record, clock.nowMs()),
    readLedger(store, poolUidOf(record.pool)),
  ]);
  return { record, hosts, others, ledger, nowMs: clock.nowMs() };
}

/** The pool with its counts, its history and its etag. */
export async function presentPool(
  deps: RpcDependencies,
  { record, revision }: KeptPool,
  snapshotOf?: SnapshotOf,
): Promise<Pool> {
  const pool = shownPool(await readPoolView(deps, record, snapshotOf));
  pool.etag = formatPosition(deps.store, revision);
  return pool;
}

/** A host's explanation, with the part about the pool that holds it. */
export async function withItsPool(
  deps: RpcDependencies,
  explanation: Explanation,
): Promise<Explanation> {
  for (const [poolId, { members }] of deps.pools.known()) {
    if (!members.some(({ host }) => host === explanation.subject)) continue;
    const kept = await readRecord(deps.store, schema, poolKey(poolId));
    if (kept === undefined) continue;
    const { hosts } = await readSnapshot(deps, kept.record, deps.clock.nowMs());
    return withPool(explanation, kept.record, hosts, deps.clock.nowMs());
  }
  return explanation;
}
