/** PoolService: hosts that are kept on one image, and the rollout of a new one. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  type CallContext,
  WatchPoolsResponse_Kind as Kind,
  ListDeployHistoryResponseSchema,
  type ListPoolsRequest,
  type ListPoolsResponse,
  ListPoolsResponseSchema,
  type PlanRolloutRequest,
  PoolSchema,
  PoolService,
  type WatchPoolsRequest,
  type WatchPoolsResponseSchema,
  store as wire,
} from '@rackwright/messages';
import type { Entry } from '@rackwright/store';
import { requireName } from '../../call/names.ts';
import { listPage } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { watchCollection } from '../../call/watch-collection.ts';
import { resolvedImage } from '../../host/spec/image-by-digest.ts';
import { readableRecordOf } from '../../records/index.ts';
import {
  contestedOf,
  digestInImage,
  draftPoolPlan,
  explainPool,
  needsLookup,
  readSnapshot,
  readSnapshots,
  rolloutPlan,
  type SnapshotOf,
  shownHistory,
  shownHosts,
} from '../index.ts';
import {
  approvePool,
  createPool,
  deletePool,
  draftPool,
  setPaused,
  updatePool,
} from './change-pool.ts';
import { historyPage } from './deploy-history.ts';
import { existingPool, type KeptPool, presentPool, readPoolView } from './pool-view.ts';
import { addDisks } from './rollout-disks.ts';

const schema = wire.PoolRecordSchema;

/** The service over these dependencies. */
export function createPoolService(deps: RpcDependencies): BoundService {
  const viewed = async (name: string, field = 'name') => {
    const { record } = await existingPool(deps, requireName('pools', name, field));
    return readPoolView(deps, record);
  };
  return bind(PoolService, {
    createPool: (request) => createPool(deps, request),
    getPool: async ({ name }) =>
      presentPool(deps, await existingPool(deps, requireName('pools', name))),
    listPools: (request) => listPools(deps, request),
    updatePool: (request) => updatePool(deps, request),
    deletePool: (request) => deletePool(deps, request),
    watchPools: (request, context) => watchPools(deps, request, context),
    pausePool: (request) => setPaused(deps, request, { paused: true }),
    resumePool: (request) => setPaused(deps, request, { paused: false }),
    approvePool: (request) => approvePool(deps, request),
    listPoolHosts: async ({ parent }) => {
      const view = await viewed(parent, 'parent');
      return { hosts: shownHosts(view, view.others) };
    },
    listDeployHistory: async (request) => {
      const view = await viewed(request.parent, 'parent');
      const entries = shownHistory(view, Number.POSITIVE_INFINITY);
      return create(ListDeployHistoryResponseSchema, historyPage(deps.store, request, entries));
    },
    planRollout: (request) => planRollout(deps, request),
    explainPool: async ({ name }) => {
      const view = await viewed(name);
      const contested = contestedOf(view.record, view);
      return explainPool(view.record, view.hosts, contested, view.nowMs);
    },
  });
}

async function planRollout(deps: RpcDependencies, request: PlanRolloutRequest) {
  if (request.pool === undefined) {
    const { record } = await existingPool(deps, requireName('pools', request.name));
    const view = await readPoolView(deps, record);
    return addDisks(deps, rolloutPlan(view), record);
  }
  const draft = await draftPool(deps, request);
  const { record } = draft;
  const { spec } = record.pool ?? {};
  const field = 'pool.spec.image';
  const { image, platforms } = needsLookup(record)
    ? await resolvedImage(deps, spec?.image ?? '', field)
    : { image: '' };
  const snapshot = await readSnapshot(deps, record, deps.clock.nowMs());
  const plan = draftPoolPlan(
    { ...draft, digest: digestInImage(image), platforms },
    snapshot,
    deps.clock.nowMs(),
  );
  return addDisks(deps, plan, record);
}

async function listPools(
  deps: RpcDependencies,
  request: ListPoolsRequest,
): Promise<ListPoolsResponse> {
  const read = (entry: Entry): KeptPool | undefined => {
    const record = readableRecordOf(deps, schema, entry);
    return record && { record, revision: entry.revision };
  };
  const page = await listPage(deps.store, 'pools', request, '', read);
  const snapshotOf = await readSnapshots(deps, deps.clock.nowMs());
  const pools = await Promise.all(page.items.map((kept) => presentPool(deps, kept, snapshotOf)));
  return create(ListPoolsResponseSchema, { pools, nextPageToken: page.nextPageToken });
}

async function* watchPools(
  deps: RpcDependencies,
  { name, position }: WatchPoolsRequest,
  { signal }: CallContext,
): AsyncGenerator<MessageInitShape<typeof WatchPoolsResponseSchema>, void, undefined> {
  const shown = async (kept: KeptPool, snapshotOf?: SnapshotOf) => ({
    pool: await presentPool(deps, kept, snapshotOf),
  });
  const pools = {
    collection: 'pools',
    schema,
    only: name === '' ? undefined : requireName('pools', name),
    kinds: Kind,
    show: (kept: KeptPool) => shown(kept),
    showListed: async () => {
      const snapshotOf = await readSnapshots(deps, deps.clock.nowMs());
      return (kept: KeptPool) => shown(kept, snapshotOf);
    },
    gone: (poolName: string) => ({ pool: create(PoolSchema, { name: poolName }) }),
  };
  yield* watchCollection(deps.store, pools, position, signal);
}
