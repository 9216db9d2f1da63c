/** PoolService: hosts that are kept on one image, and how a new one is rolled out. */
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  type CallContext,
  WatchPoolsResponse_Kind as Kind,
  ListDeployHistoryResponseSchema,
  type ListPoolsRequest,
  type ListPoolsResponse,
  ListPoolsResponseSchema,
  PoolSchema,
  PoolService,
  type WatchPoolsRequest,
  type WatchPoolsResponseSchema,
  store as wire,
} from '@rackwright/api';
import type { Revision } from '@rackwright/store';
import {
  contestedOf,
  explainPool,
  readWorlds,
  rolloutPlan,
  shownHistory,
  shownHosts,
} from '../../pool/index.ts';
import { answered } from '../../records/index.ts';
import { follow } from '../call/follow.ts';
import { requireName } from '../call/names.ts';
import { isDirectlyBelow, listPage } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { formatPosition, revisionOfPosition } from '../call/position.ts';
import { approvePool, createPool, deletePool, setPaused, updatePool } from './change-pool.ts';
import { historyPage } from './deploy-history.ts';
import { existingPool, type KeptPool, presentPool, viewedPool } from './pool-view.ts';
import { addDisks } from './rollout-disks.ts';

const schema = wire.PoolRecordSchema;

/** The service over these dependencies. */
export function createPoolService(deps: RpcDependencies): BoundService {
  const viewed = async (name: string, field = 'name') => {
    const { record } = await existingPool(deps, requireName('pools', name, field));
    return viewedPool(deps, record);
  };
  return bind(PoolService, {
    createPool: (request) => createPool(deps, request),
    getPool: async ({ name }) =>
      presentPool(deps, await existingPool(deps, requireName('pools', name))),
    listPools: (request) => listPools(deps, request),
    updatePool: (request) => updatePool(deps, request),
    deletePool: (request) => deletePool(deps, request),
    watchPools: (request, context) => watchPools(deps, request, context),
    pausePool: (request) => setPaused(deps, request, true),
    resumePool: (request) => setPaused(deps, request, false),
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
    planRollout: async ({ name }) => {
      const view = await viewed(name);
      return addDisks(deps, rolloutPlan(view), view);
    },
    explainPool: async ({ name }) => {
      const view = await viewed(name);
      const contested = contestedOf(view.record, view);
      return explainPool(view.record, view.hosts, contested, view.nowMs);
    },
  });
}

async function listPools(
  deps: RpcDependencies,
  request: ListPoolsRequest,
): Promise<ListPoolsResponse> {
  const page = await listPage(deps.store, 'pools', request, '', ({ value, revision }): KeptPool => {
    return { record: fromBinary(schema, value), revision };
  });
  const worldOf = await readWorlds(deps.store);
  const pools = await Promise.all(page.items.map((kept) => presentPool(deps, kept, worldOf)));
  return create(ListPoolsResponseSchema, { pools, nextPageToken: page.nextPageToken });
}

/** No gap: the listing says from where to follow; what cannot be followed ends the stream. */
async function* watchPools(
  deps: RpcDependencies,
  { name, position }: WatchPoolsRequest,
  { signal }: CallContext,
): AsyncGenerator<MessageInitShape<typeof WatchPoolsResponseSchema>, void, undefined> {
  const { store } = deps;
  const only = name === '' ? undefined : `pools.${requireName('pools', name)}`;
  const isWatched = (key: string) =>
    isDirectlyBelow('pools', key) && (only === undefined || key === only);
  let from: Revision;
  if (position === '') {
    const { entries, before } = await answered(store.list('pools'));
    const worldOf = await readWorlds(store);
    for (const { key, value, revision } of entries) {
      if (!isWatched(key)) continue;
      const record = fromBinary(schema, value);
      const pool = await presentPool(deps, { record, revision }, worldOf);
      yield { kind: Kind.UPDATED, pool, position: '' };
    }
    yield { kind: Kind.SYNCED, position: formatPosition(store, before) };
    from = before;
  } else {
    from = revisionOfPosition(store, position);
  }
  for await (const change of follow(store, from, ['pools'], signal)) {
    if (!isWatched(change.key)) continue;
    const at = formatPosition(store, change.revision);
    if (change.kind === 'delete') {
      const gone = create(PoolSchema, { name: change.key.replace('.', '/') });
      yield { kind: Kind.DELETED, pool: gone, position: at };
    } else {
      const record = fromBinary(schema, change.value);
      const pool = await presentPool(deps, { record, revision: change.revision });
      yield { kind: Kind.UPDATED, pool, position: at };
    }
  }
}
