/**
 * WatchHosts: every host once, then every change in order.
 *
 * Invariants:
 * 1. No gap: the listing says from where to follow; what cannot be followed ends the stream.
 * 2. What is served and not stored (percent, agent connected) is looked at in intervals, and sent
 *    when it differs; it has no position of its own.
 */

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type CallContext,
  HostSchema,
  WatchHostsResponse_Kind as Kind,
  type WatchHostsRequest,
  type WatchHostsResponse,
  type WatchHostsResponseSchema,
  store as wire,
} from '@rackwright/api';
import type { Change, Entry, Revision } from '@rackwright/store';
import { answered, idOf, idOfKey, isDirectlyBelow, sharedRecordOf } from '../../records/index.ts';
import { follow, withTicks } from '../call/follow.ts';
import { factsKey, presentHost, readAllFacts, readFacts, readHost } from '../call/host-view.ts';
import { requireName } from '../call/names.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { formatPosition, revisionOfPosition } from '../call/position.ts';

/** How often served fields are compared, milliseconds. */
const servedIntervalMs = 1_000;

type Response = MessageInitShape<typeof WatchHostsResponseSchema>;
type Sent = Map<string, { readonly rackId: string; readonly served: string }>;

/** Handles one WatchHosts. */
export async function* watchHosts(
  deps: RpcDependencies,
  request: WatchHostsRequest,
  { signal }: CallContext,
): AsyncGenerator<Response, void, undefined> {
  const only = request.name === '' ? undefined : requireName('hosts', request.name);
  const watching: Watching = { deps, only, sent: new Map() };
  let from: Revision;
  if (request.position === '') {
    from = yield* sendPresent(watching);
  } else {
    from = revisionOfPosition(deps.store, request.position);
  }
  const changes = follow(deps.store, from, ['hosts', 'facts'], signal);
  for await (const next of withTicks(changes, servedIntervalMs, deps.clock)) {
    if (next.kind === 'tick') yield* sendServed(watching);
    else yield* sendChange(watching, next.item);
  }
}

interface Watching {
  readonly deps: RpcDependencies;
  /** Id of the one host that is watched; undefined for all. */
  readonly only: string | undefined;
  readonly sent: Sent;
}

async function* sendPresent(watching: Watching): AsyncGenerator<Response, Revision, undefined> {
  const { deps } = watching;
  const { entries, before } = await answered(deps.store.list('hosts'));
  const facts = await readAllFacts(deps);
  for (const entry of entries) {
    const hostId = idBelow('hosts', entry.key);
    if (hostId === undefined || !isWatched(watching, hostId)) continue;
    const host = presentHost(
      deps,
      recordOf(deps, entry),
      entry.revision,
      facts.get(factsKey(hostId)),
    );
    yield updated(watching, hostId, host, '');
  }
  yield { kind: Kind.SYNCED, position: formatPosition(deps.store, before) };
  return before;
}

async function* sendChange(
  watching: Watching,
  change: Change,
): AsyncGenerator<Response, void, undefined> {
  const { deps, sent } = watching;
  const position = formatPosition(deps.store, change.revision);
  const ofFacts = idBelow('facts', change.key);
  if (ofFacts !== undefined && isWatched(watching, ofFacts)) {
    const found = await readHost(deps, ofFacts);
    if (found !== undefined) yield updated(watching, ofFacts, found.host, position);
    return;
  }
  const hostId = idBelow('hosts', change.key);
  if (hostId === undefined || !isWatched(watching, hostId)) return;
  if (change.kind === 'delete') {
    sent.delete(hostId);
    yield { kind: Kind.DELETED, host: create(HostSchema, { name: `hosts/${hostId}` }), position };
    return;
  }
  const facts = await readFacts(deps, hostId);
  const host = presentHost(deps, recordOf(deps, change), change.revision, facts);
  yield updated(watching, hostId, host, position);
}

/** Invariant 2. */
async function* sendServed(watching: Watching): AsyncGenerator<Response, void, undefined> {
  const { deps, sent } = watching;
  for (const [hostId, { rackId, served }] of [...sent]) {
    if (servedKey(deps, hostId, rackId) === served) continue;
    const found = await readHost(deps, hostId);
    if (found !== undefined) yield updated(watching, hostId, found.host, '');
  }
}

function updated(
  { deps, sent }: Watching,
  hostId: string,
  host: NonNullable<WatchHostsResponse['host']>,
  position: string,
): Response {
  const rackId = idOf(host.spec?.rack);
  sent.set(hostId, { rackId, served: servedKey(deps, hostId, rackId) });
  return { kind: Kind.UPDATED, host, position };
}

function servedKey({ hosts }: RpcDependencies, hostId: string, rackId: string): string {
  const progress = hosts.progressOf(hostId);
  return `${hosts.agentConnected(rackId)} ${progress?.percent} ${progress?.text}`;
}

function isWatched({ only }: Watching, hostId: string): boolean {
  return only === undefined || only === hostId;
}

/** As others decode it too who follow the hosts. */
function recordOf({ store }: RpcDependencies, entry: Entry): wire.HostRecord {
  return sharedRecordOf(store, wire.HostRecordSchema, entry);
}

function idBelow(collection: 'hosts' | 'facts', key: string): string | undefined {
  return isDirectlyBelow(collection, key) ? idOfKey(key) : undefined;
}
