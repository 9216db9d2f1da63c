/** EventService: events of changes, live and from the past. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  type CallContext,
  EventService,
  GapReason,
  invalidArgument,
  WatchEventsResponse_Kind as Kind,
  unavailable,
  type WatchEventsRequest,
  type WatchEventsResponseSchema,
} from '@rackwright/messages';
import { StoreError } from '@rackwright/store';
import { filterOf } from '../../call/filtering.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { orUnavailable } from '../../records/index.ts';
import { gapOf } from '../derive/derive.ts';
import { eventFields, isWanted } from '../event-fields.ts';
import { eventFeed, type FedChange } from '../feed.ts';
import {
  advancePositions,
  formatPositions,
  type Positions,
  parsePositions,
  positionsFrom,
} from '../positions.ts';
import { listEvents } from './list-events.ts';

type Response = MessageInitShape<typeof WatchEventsResponseSchema>;

/** The service over these dependencies. */
export function createEventService(deps: RpcDependencies): BoundService {
  return bind(EventService, {
    watchEvents: (request, context) => watchEvents(deps, request, context),
    listEvents: (request) => listEvents(deps, request),
  });
}

async function* watchEvents(
  { store }: RpcDependencies,
  request: WatchEventsRequest,
  { signal }: CallContext,
): AsyncGenerator<Response, void, undefined> {
  const filter = filterOf(eventFields, request.filter);
  const startAt = positionsOf(request.position);
  const now = await orUnavailable(store.latestRevision());
  let positions = startAt ?? positionsFrom(store, now);
  if (positions.incarnation !== store.incarnation) {
    // After a restore, revisions are reused: earlier events under them do not count.
    positions = positionsFrom(store, now);
    const change = { key: 'fleet', revision: now };
    const { event } = gapOf(store.incarnation, change, GapReason.RESTORED);
    yield { kind: Kind.EVENT, event, position: formatPositions(positions) };
  }
  yield { kind: Kind.STARTED, position: formatPositions(positions) };
  for await (const change of feedOf(store, positions, signal)) {
    if (change.upTo !== undefined) {
      positions = advancePositions(positions, change.collection, change.upTo);
    }
    const wanted = change.events.filter((event) => isWanted(filter, event));
    for (const [index, { event }] of wanted.entries()) {
      const isLast = index === wanted.length - 1 && change.upTo !== undefined;
      yield { kind: Kind.EVENT, event, position: isLast ? formatPositions(positions) : '' };
    }
  }
}

async function* feedOf(
  store: RpcDependencies['store'],
  from: Positions,
  signal: AbortSignal,
): AsyncGenerator<FedChange, void, undefined> {
  try {
    yield* eventFeed(store, from, signal);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw unavailable('STORE_UNAVAILABLE', 'The watch broke off; resume it.', undefined, error);
  }
}

/** Undefined: from now. Throws `invalidArgument`. */
function positionsOf(text: string): Positions | undefined {
  const positions = text === '' ? undefined : parsePositions(text);
  if (text === '' || positions !== undefined) return positions;
  const description = 'is no position of this API; send the last one received, or none';
  throw invalidArgument([{ field: 'position', description }]);
}
