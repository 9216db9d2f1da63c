/** ListEvents: the past events of one record, a page at a time. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  invalidArgument,
  type ListEventsRequest,
  type ListEventsResponseSchema,
  notFound,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { filterOf } from '../../call/filtering.ts';
import { parseName } from '../../call/names.ts';
import { pageSizeOf } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { formatPageToken, parsePageToken } from '../../call/position.ts';
import type { EventCollection, TracedEvent } from '../derive/derive.ts';
import { eventFields, isWanted } from '../event-fields.ts';
import { eventsBack } from '../past.ts';

/** Changes that one page reads, also when none of their events match. */
const changesPerPageMax = 512;

const collections = ['hosts', 'racks', 'pools'] as const;

/** Handles one ListEvents. */
export async function listEvents(
  { store }: Pick<RpcDependencies, 'store'>,
  request: ListEventsRequest,
): Promise<MessageInitShape<typeof ListEventsResponseSchema>> {
  const { collection, key } = recordOf(request.subject);
  const filter = filterOf(eventFields, request.filter);
  const size = pageSizeOf(request.pageSize);
  const queryText = JSON.stringify([request.subject, request.filter]);
  const token = parsePageToken(store, queryText, request.pageToken);
  const from = token === '' ? undefined : Number(token);
  const wanted: TracedEvent['event'][] = [];
  let changesRead = 0;
  for await (const { revision, events } of eventsBack(store, collection, key, from)) {
    if (wanted.length >= size || changesRead >= changesPerPageMax) {
      const nextPageToken = formatPageToken(store, queryText, String(revision));
      return { events: wanted, nextPageToken };
    }
    changesRead += 1;
    for (const event of events) if (isWanted(filter, event)) wanted.push(event.event);
  }
  if (changesRead === 0 && from === undefined) throw notFound(request.subject);
  return { events: wanted, nextPageToken: '' };
}

/** Of "hosts/h1" or "fleet". Throws `invalidArgument`. */
function recordOf(subject: string): { readonly collection: EventCollection; readonly key: string } {
  if (subject === 'fleet') return { collection: 'fleet', key: storeKey('fleet', 'fleet') };
  for (const collection of collections) {
    const id = parseName(collection, subject);
    if (id !== undefined) return { collection, key: storeKey(collection, id) };
  }
  const which = subject === '' ? 'is missing' : `is ${JSON.stringify(subject.slice(0, 100))}`;
  const description = `${which}; name a host, rack or pool, as in "hosts/h1", or "fleet"`;
  throw invalidArgument([{ field: 'subject', description }]);
}
