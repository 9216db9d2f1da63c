/**
 * WatchHosts: every host once, then every change in order.
 *
 * Invariants:
 * 1. There is no gap. The listing says from where to follow; if the store cannot follow from there,
 *    the stream ends.
 * 2. Computed fields (percent, agent connected) are compared at intervals where they may have
 *    changed, and sent when they differ; they have no position of their own.
 * 3. With a filter, a sent host is reported as deleted once it no longer matches. After a resume,
 *    that is reported of each changed host that does not match, because an earlier watch may have
 *    sent it.
 * 4. Present hosts are read in pages. At most one page is kept in memory.
 * 5. A host never goes back: a change older than the sent version is skipped.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type CallContext,
  type HostId,
  HostSchema,
  HostView,
  WatchHostsResponse_Kind as Kind,
  type RackId,
  type WatchHostsRequest,
  type WatchHostsResponseSchema,
  store as wire,
} from '@rackwright/messages';
import type { Change, Entry, ListPage, StoreRevision } from '@rackwright/store';
import { isUnscoped } from '../../access/index.ts';
import { filterOf } from '../../call/filtering.ts';
import { follow, withTicks } from '../../call/follow.ts';
import { hostKey, type PresentDependencies, presentHost, readFacts } from '../../call/host-view.ts';
import { requireName } from '../../call/names.ts';
import { inSlices } from '../../call/paging.ts';
import type { HostsPort, RpcDependencies } from '../../call/ports.ts';
import { formatPosition, revisionOfPosition } from '../../call/position.ts';
import type { Filter } from '../../filter/index.ts';
import { type HostRow, rowOf } from '../../fleet-view/index.ts';
import {
  idOf,
  idOfKey,
  isDirectlyBelow,
  listingsOf,
  orUnavailable,
  sharedRecordOf,
} from '../../records/index.ts';
import { hostFields } from './host-fields.ts';
import { entriesMatching } from './list-hosts.ts';
import { SentHosts } from './sent-hosts.ts';

/** How often computed fields are compared, milliseconds. */
const servedIntervalMs = 1_000;
/** Hosts that are read at once when a watch begins. */
const pageHosts = 200;

type Response = MessageInitShape<typeof WatchHostsResponseSchema>;
type WatchDependencies = PresentDependencies &
  Pick<RpcDependencies, 'clock' | 'fleetView' | 'principal'> & {
    readonly hosts: Pick<HostsPort, 'onServedChange'>;
  };

/** Handles one WatchHosts. */
export async function* watchHosts(
  deps: WatchDependencies,
  request: WatchHostsRequest,
  { signal }: CallContext,
): AsyncGenerator<Response, void, undefined> {
  const only = request.name === '' ? undefined : requireName('hosts', request.name);
  const filter = filterOf(hostFields, request.filter);
  const { view, changesOnly, position } = request;
  const isResumed = position !== '' || changesOnly;
  const delivered = { sent: new SentHosts(), left: new Set<HostId>() };
  const watching: Watching = { deps, only, filter, view, isResumed, ...delivered };
  const cancel = deps.hosts.onServedChange(watching.sent);
  try {
    const from = yield* begin(watching, position);
    const changes = follow(deps.store, from, ['hosts', 'facts'], signal);
    for await (const next of withTicks(changes, servedIntervalMs, deps.clock)) {
      if (next.kind === 'tick') yield* sendServed(watching);
      else yield* sendChange(watching, next.item);
    }
  } finally {
    cancel();
  }
}

async function* begin(
  watching: Watching,
  position: string,
): AsyncGenerator<Response, StoreRevision, undefined> {
  const { store } = watching.deps;
  if (position !== '') return revisionOfPosition(store, position);
  if (!watching.isResumed) return yield* sendPresent(watching);
  const from = await orUnavailable(store.latestRevision());
  yield { kind: Kind.SYNCED, position: formatPosition(store, from) };
  return from;
}

interface Watching {
  readonly deps: WatchDependencies;
  /** Id of the only watched host; undefined for all. */
  readonly only: HostId | undefined;
  readonly filter: Filter<HostRow>;
  readonly view: HostView;
  /** From a position, or from now: earlier responses are unknown. */
  readonly isResumed: boolean;
  readonly sent: SentHosts;
  /** Hosts that were reported as deleted because they do not match. */
  readonly left: Set<HostId>;
}

/**
 * Invariant 4. Changes are followed from the first page's revision, and cover what later pages
 * lack.
 */
async function* sendPresent(
  watching: Watching,
): AsyncGenerator<Response, StoreRevision, undefined> {
  const { deps, only } = watching;
  if (only === undefined && !isUnscoped(deps.principal.scope)) return yield* sendVisible(watching);
  const below = only === undefined ? 'hosts' : hostKey(only);
  const read = (page: ListPage) => orUnavailable(deps.store.list(below, page));
  let from: StoreRevision | undefined;
  for await (const { entries, before } of listingsOf(read, { limit: pageHosts })) {
    from ??= before;
    for (const entry of entries) {
      const hostId = idBelow('hosts', entry.key);
      if (hostId !== undefined && isWatched(watching, hostId)) {
        yield* sendHost(watching, hostId, entry, '');
      }
    }
  }
  from ??= await orUnavailable(deps.store.latestRevision());
  yield { kind: Kind.SYNCED, position: formatPosition(deps.store, from) };
  return from;
}

/**
 * Present hosts for a caller with a scope, by the rows of the view: nothing else is read. Changes
 * are followed from before the view was read.
 */
async function* sendVisible(
  watching: Watching,
): AsyncGenerator<Response, StoreRevision, undefined> {
  const { deps, filter } = watching;
  const from = await orUnavailable(deps.store.latestRevision());
  await deps.fleetView.caughtUp();
  for await (const entry of entriesMatching(deps, { filter })) {
    yield* sendHost(watching, idOfKey(entry.key), entry, '');
  }
  yield { kind: Kind.SYNCED, position: formatPosition(deps.store, from) };
  return from;
}

async function* sendChange(
  watching: Watching,
  change: Change,
): AsyncGenerator<Response, void, undefined> {
  const { deps, sent } = watching;
  const position = formatPosition(deps.store, change.revision);
  const ofFacts = idBelow('facts', change.key);
  if (ofFacts !== undefined && isWatched(watching, ofFacts)) {
    const found = await orUnavailable(deps.store.get(hostKey(ofFacts)));
    if (found.kind === 'found') yield* sendHost(watching, ofFacts, found, position);
    return;
  }
  const hostId = idBelow('hosts', change.key);
  if (hostId === undefined || !isWatched(watching, hostId)) return;
  if (change.kind === 'put') {
    yield* sendHost(watching, hostId, change, position);
    return;
  }
  if (change.revision < (sent.get(hostId)?.revision ?? 0)) return;
  sent.delete(hostId);
  yield gone(hostId, position);
}

/**
 * The host of this entry, or that it no longer matches. An entry that cannot be decoded is skipped.
 */
async function* sendHost(
  watching: Watching,
  hostId: HostId,
  entry: Entry,
  position: string,
): AsyncGenerator<Response, void, undefined> {
  const { deps, filter, view, isResumed, sent, left } = watching;
  if (entry.revision < (sent.get(hostId)?.revision ?? 0)) return;
  const row = rowOf(entry, (each) => recordOf(deps, each));
  if (row.kind !== 'host') return;
  if (filter.matches(row)) {
    left.delete(hostId);
    const facts = view === HostView.BASIC ? undefined : await readFacts(deps, hostId);
    const host = presentHost(deps, recordOf(deps, entry), entry.revision, facts);
    const rackId = idOf(host.spec?.rack);
    const served = servedKey(deps, hostId, rackId);
    sent.set(hostId, { revision: entry.revision, rackId, served });
    yield { kind: Kind.UPDATED, host, position };
    return;
  }
  if (!sent.delete(hostId) && (!isResumed || left.has(hostId))) return;
  left.add(hostId);
  yield gone(hostId, position);
}

function gone(hostId: HostId, position: string): Response {
  return { kind: Kind.DELETED, host: create(HostSchema, { name: `hosts/${hostId}` }), position };
}

/** Invariant 2. */
async function* sendServed(watching: Watching): AsyncGenerator<Response, void, undefined> {
  const { deps, sent } = watching;
  const changedOf = inSlices(deps.clock, async (hostId: HostId) => {
    const known = sent.get(hostId);
    const isSame = known?.served === (known && servedKey(deps, hostId, known.rackId));
    return isSame ? undefined : known;
  });
  for (const hostId of sent.takeChanged()) {
    const known = await changedOf(hostId);
    if (known === undefined) continue;
    const found = await orUnavailable(deps.store.get(hostKey(hostId)));
    if (found.kind === 'found') yield* sendHost(watching, hostId, found, '');
    // The store has read less than was sent: the next tick tries again.
    if (sent.get(hostId) === known) sent.progressChanged(hostId);
  }
}

function servedKey({ hosts }: WatchDependencies, hostId: HostId, rackId: RackId): string {
  const progress = hosts.progressOf(hostId);
  return `${hosts.isAgentConnected(rackId)} ${progress?.percent} ${progress?.text}`;
}

function isWatched({ only }: Watching, hostId: HostId): boolean {
  return only === undefined || only === hostId;
}

/** Shares the decoded record with the other followers of hosts. */
function recordOf({ store }: WatchDependencies, entry: Entry): wire.HostRecord {
  return sharedRecordOf(store, wire.HostRecordSchema, entry);
}

function idBelow(collection: 'hosts' | 'facts', key: string): string | undefined {
  return isDirectlyBelow(collection, key) ? idOfKey(key) : undefined;
}
