/** RackService: racks, and the join tokens of their agents. */
import { clone, create, equals, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  alreadyExists,
  type BoundService,
  bind,
  type CallContext,
  type CreateJoinTokenRequest,
  type CreateRackRequest,
  counted,
  failedPrecondition,
  invalidArgument,
  type JoinTokenSchema,
  WatchRacksResponse_Kind as Kind,
  type ListRacksRequest,
  notFound,
  type Rack,
  RackSchema,
  RackService,
  RackSpecSchema,
  RackStatusSchema,
  type RequestId,
  type RevokeAgentRequest,
  type UpdateRackRequest,
  type WatchRacksRequest,
  type WatchRacksResponseSchema,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import {
  type Entry,
  LIST_PAGE_MAX,
  type ListPage,
  type StoreRevision,
  storeKey,
} from '@rackwright/store';
import { applyMask, maskPaths } from '../call/field-mask.ts';
import { filterOf, pageOfItems } from '../call/filtering.ts';
import { hostsBy } from '../call/host-view.ts';
import { idProblem, nameProblem, parseName, requireName } from '../call/names.ts';
import { listPage, type Page } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { checkEtag, etagMismatch, formatPosition } from '../call/position.ts';
import { checkLabels, checkReason, checkRequestId } from '../call/texts.ts';
import { Violations } from '../call/violations.ts';
import { watchCollection } from '../call/watch-collection.ts';
import { explainRack } from '../host/index.ts';
import { createJoinToken, revokeAgent } from '../identity/index.ts';
import {
  appliedId,
  deleteRecord,
  hasApplied,
  isDirectlyBelow,
  listingsOf,
  orUnavailable,
  readableRecordOf,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../records/index.ts';
import { acceptRestoredStore, type ChangedRack, freezeRack, thawRack } from './brakes.ts';
import { dropPrefetched, listPrefetched, prefetchImage } from './prefetch.ts';
import { rackFields } from './rack-fields.ts';
import { checkRackSpec, rackPaths } from './rack-spec.ts';

/** The most hosts that a refusal to delete their rack names. */
const hostsNamedMax = 5;

/** The service over these dependencies. */
export function createRackService(deps: RpcDependencies): BoundService {
  return bind(RackService, {
    createRack: (request) => createRack(deps, request),
    getRack: async ({ name }) => {
      const { record, revision } = await existing(deps, name);
      return present(deps, record, revision);
    },
    listRacks: async (request) => {
      const page = await listRacks(deps, request);
      return { racks: [...page.items], nextPageToken: page.nextPageToken };
    },
    updateRack: (request) => updateRack(deps, request),
    deleteRack: (request) => deleteRack(deps, request),
    watchRacks: (request, context) => watchRacks(deps, request, context),
    explainRack: async ({ name }) => {
      const { record } = await existing(deps, name);
      const hosts = await hostsBy(deps, 'rack', name);
      const connected = deps.hosts.isAgentConnected(parseName('racks', name) ?? '');
      const remarks = deps.discovery.remarksOf(record.rack);
      const faults = deps.trustFaults?.() ?? [];
      return explainRack(record, connected, hosts, [...faults, ...remarks]);
    },
    freezeRack: async (call) => shown(deps, await freezeRack(deps, call)),
    thawRack: async (call) => shown(deps, await thawRack(deps, call)),
    acceptRestoredStore: async (call) => shown(deps, await acceptRestoredStore(deps, call)),
    prefetchImage: (call) => prefetchImage(deps, call),
    listPrefetchedImages: ({ name }) => listPrefetched(deps, name),
    dropPrefetchedImage: (call) => dropPrefetched(deps, call),
    createJoinToken: async (call) => makeJoinToken(deps, call),
    revokeAgent: (call) => revoke(deps, call),
  });
}

/** A sorted list reads all racks; otherwise it reads those of one page. */
async function listRacks(deps: RpcDependencies, request: ListRacksRequest): Promise<Page<Rack>> {
  const { store } = deps;
  const { filter, orderBy } = request;
  const read = (entry: Entry) => {
    const record = readableRecordOf(deps, wire.RackRecordSchema, entry);
    return record && present(deps, record, entry.revision);
  };
  if (orderBy === '') {
    const { matches } = filterOf(rackFields, filter);
    return listPage(store, 'racks', request, filter, (entry) => {
      const rack = read(entry);
      return rack && matches(rack) ? rack : undefined;
    });
  }
  const list = (page: ListPage) => orUnavailable(store.list('racks', page));
  async function* items() {
    for await (const { entries } of listingsOf(list, { limit: LIST_PAGE_MAX })) {
      yield entries
        .filter(({ key }) => isDirectlyBelow('racks', key))
        .flatMap((each) => read(each) ?? []);
    }
  }
  const bytesOf = (rack: Rack) => toBinary(RackSchema, rack).byteLength;
  const nameOf = ({ name }: Rack) => name;
  const listed = { fields: rackFields, items: items(), nameOf, bytesOf, usually: 'name' };
  return pageOfItems(store, listed, request, 'racks');
}

async function revoke(deps: RpcDependencies, call: RevokeAgentRequest): Promise<Rack> {
  const { name, reason, requestId } = call;
  const violations = new Violations();
  violations.addIf('name', nameProblem('racks', name));
  if (reason === '') violations.add('reason', 'is missing; say why the key is trusted no more');
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const rackId = requireName('racks', name);
  const trust = { writer: deps, identity: deps.identity };
  await revokeAgent(trust, { rackId, by: deps.actor, reason, requestId });
  deps.log.info({ rack: name, actor: deps.actor, reason }, 'the key of the agent was revoked');
  const { record, revision } = await existing(deps, name);
  return present(deps, record, revision);
}

async function makeJoinToken(
  deps: RpcDependencies,
  { rack, replaceAgent }: CreateJoinTokenRequest,
): Promise<MessageInitShape<typeof JoinTokenSchema>> {
  const rackId = requireName('racks', rack, 'rack');
  const trust = { writer: deps, identity: deps.identity };
  const call = { rackId, replaceAgent, by: deps.actor };
  const { token, expireTime, replacesSha256 } = await createJoinToken(trust, call);
  deps.log.info({ rack, actor: deps.actor, replaceAgent }, 'a join token was made');
  return {
    token,
    expireTime,
    caSha256: deps.identity.caSha256,
    enrolmentAddress: deps.enrolmentEndpoint ?? '',
    replacesKeySha256: replacesSha256,
  };
}

async function existing(deps: RpcDependencies, name: string) {
  const kept = await readRecord(deps.store, wire.RackRecordSchema, rackKey(name));
  if (kept === undefined) throw notFound(name);
  return kept;
}

function shown(deps: RpcDependencies, { record, revision }: ChangedRack): Rack {
  return present(deps, record, revision);
}

function rackKey(name: string): string {
  return storeKey('racks', requireName('racks', name));
}

function present(deps: RpcDependencies, record: wire.RackRecord, revision: StoreRevision): Rack {
  const rack = record.rack === undefined ? create(RackSchema) : clone(RackSchema, record.rack);
  rack.etag = formatPosition(deps.store, revision);
  rack.status ??= create(RackStatusSchema);
  rack.status.tombstones = record.tombstones.length;
  rack.status.discoveredMachines = deps.discovery.listedIn(rack.name);
  rack.status.agentConnected = deps.hosts.isAgentConnected(parseName('racks', rack.name) ?? '');
  return rack;
}

async function createRack(deps: RpcDependencies, request: CreateRackRequest): Promise<Rack> {
  const { rackId, rack, requestId } = request;
  const violations = new Violations();
  violations.addIf('rack_id', idProblem(rackId));
  checkRequestId(requestId, violations);
  checkRack(rack ?? create(RackSchema), violations);
  violations.throwIfAny();
  const name = `racks/${rackId}`;
  const time = timestampFromMs(deps.clock.nowMs());
  const record = create(wire.RackRecordSchema, {
    rack: {
      name,
      uid: randomId(deps.random),
      createTime: time,
      updateTime: time,
      labels: { ...rack?.labels },
      spec: rack?.spec ?? create(RackSpecSchema),
      status: {},
    },
    requestIds: withApplied([], appliedId('create', requestId)),
    incarnation: deps.store.incarnation,
  });
  const made = await readRecord(deps.store, wire.RackRecordSchema, rackKey(name));
  if (made !== undefined) return sameRack(deps, made, name, requestId);
  if (request.validateOnly) return present(deps, record, 0);
  const written = await writeRecord(deps, wire.RackRecordSchema, rackKey(name), record, 'absent');
  if (written.kind === 'conflict') {
    return sameRack(deps, await existing(deps, name), name, requestId);
  }
  deps.log.info({ rack: name, actor: deps.actor }, 'rack created');
  return present(deps, record, written.revision);
}

/** The rack that an earlier try of the same request made; any other one is a conflict. */
function sameRack(
  deps: RpcDependencies,
  { record, revision }: ChangedRack,
  name: string,
  requestId: RequestId,
): Rack {
  const same = hasApplied(record, appliedId('create', requestId));
  if (!same) throw alreadyExists(`${name} exists already.`);
  return present(deps, record, revision);
}

async function updateRack(deps: RpcDependencies, request: UpdateRackRequest): Promise<Rack> {
  const { rack: wanted } = request;
  if (wanted === undefined) {
    throw invalidArgument([{ field: 'rack', description: 'is missing; give its name and fields' }]);
  }
  return untilWritten(wanted.name, () => tryUpdate(deps, request, wanted));
}

/** Undefined when another writer was first. */
async function tryUpdate(
  deps: RpcDependencies,
  request: UpdateRackRequest,
  wanted: Rack,
): Promise<Rack | undefined> {
  const { record, revision } = await existing(deps, wanted.name);
  checkEtag(deps.store, wanted.etag, revision, wanted.name);
  const violations = new Violations();
  const paths = maskPaths(RackSchema, request.updateMask, wanted, rackPaths, violations);
  const next = clone(wire.RackRecordSchema, record);
  next.rack ??= create(RackSchema);
  applyMask(RackSchema, next.rack, wanted, paths);
  checkRack(next.rack, violations);
  violations.throwIfAny();
  const changes = !equals(wire.RackRecordSchema, record, next);
  if (request.validateOnly || !changes) return present(deps, next, revision);
  next.rack.updateTime = timestampFromMs(deps.clock.nowMs());
  const key = rackKey(wanted.name);
  const written = await writeRecord(deps, wire.RackRecordSchema, key, next, revision);
  if (written.kind === 'conflict') return undefined;
  // A new rule may accept waiting machines.
  deps.discovery.wakeRack(wanted.name);
  return present(deps, next, written.revision);
}

async function deleteRack(
  deps: RpcDependencies,
  { name, etag }: { name: string; etag: string },
): Promise<Rack> {
  const { record, revision } = await existing(deps, name);
  checkEtag(deps.store, etag, revision, name);
  const hosts = (await hostsBy(deps, 'rack', name)).map(({ host }) => host?.name ?? '');
  if (hosts.length > 0) {
    const named = hosts.slice(0, hostsNamedMax).join(', ');
    const more = hosts.length > hostsNamedMax ? ', …' : '';
    throw failedPrecondition(
      'RACK_HAS_HOSTS',
      `${name} still has ${counted(hosts.length, 'host')}: ${named}${more}. Delete them first.`,
    );
  }
  await refuseWithFences(deps, name, record.tombstones);
  const gone = await deleteRecord(deps, rackKey(name), revision);
  if (gone.kind === 'conflict') throw etagMismatch(name);
  deps.log.info({ rack: name, actor: deps.actor }, 'rack deleted');
  return present(deps, record, revision);
}

/**
 * Refuses while the agent may still act on a forcibly removed host. Once every fence is lifted, the
 * remaining tombstones are deleted with the rack, whose agent is refused from then on.
 */
async function refuseWithFences(
  { store }: RpcDependencies,
  name: string,
  tombstones: readonly string[],
): Promise<void> {
  const pending: string[] = [];
  for (const uid of tombstones) {
    const key = storeKey('abandonedResources', uid);
    const kept = await readRecord(store, wire.AbandonedRecordSchema, key);
    if (kept?.record.resource?.fencePending === true) pending.push(`abandonedResources/${uid}`);
  }
  if (pending.length === 0) return;
  const named = pending.slice(0, hostsNamedMax).join(', ');
  const more = pending.length > hostsNamedMax ? ', …' : '';
  throw failedPrecondition(
    'RACK_HAS_TOMBSTONES',
    `The agent of ${name} has still to forget ${counted(pending.length, 'host')}, removed by ` +
      `force: ${named}${more}. Start it, or resolve them as physically disconnected.`,
  );
}

async function* watchRacks(
  deps: RpcDependencies,
  { position, filter }: WatchRacksRequest,
  { signal }: CallContext,
): AsyncGenerator<MessageInitShape<typeof WatchRacksResponseSchema>, void, undefined> {
  const { matches } = filterOf(rackFields, filter);
  const racks = {
    collection: 'racks',
    schema: wire.RackRecordSchema,
    kinds: Kind,
    show: ({ record, revision }: ChangedRack) => {
      const rack = present(deps, record, revision);
      return matches(rack) ? { rack } : undefined;
    },
    gone: (name: string) => ({ rack: create(RackSchema, { name }) }),
  };
  yield* watchCollection(deps.store, racks, position, signal);
}

function checkRack(rack: Rack, violations: Violations): void {
  checkLabels('rack.labels', rack.labels, violations);
  if (rack.spec !== undefined) checkRackSpec('rack.spec', rack.spec, violations);
  if (rack.name !== '') violations.addIf('rack.name', nameProblem('racks', rack.name));
}
