/**
 * ListHosts and CountHosts: hosts that match, in an order, or their number.
 *
 * Invariants:
 * 1. Matches are found in the rows of the view; only returned records are read.
 * 2. A returned host matches by its own record: a row may be older.
 * 3. A caller with a scope reads through its own store, so that it never gets anything else.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type CountHostsRequest,
  type CountHostsResponseSchema,
  enumWord,
  type Host,
  type HostState,
  HostStateSchema,
  HostView,
  invalidArgument,
  type ListHostsRequest,
  type ListHostsResponseSchema,
  type RackName,
  store as wire,
} from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import type { Entry } from '@rackwright/store';
import { isInScope, isUnscoped, locationsOf, poolLabel } from '../../access/index.ts';
import { filterOf, orderOf, type SortedRows, sortedPage } from '../../call/filtering.ts';
import { hostKey, presentHost, readFacts } from '../../call/host-view.ts';
import { entriesOf, inSlices, listPage, type Page, pageOf, sliceMs } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkRackFilter } from '../../call/rack-filter.ts';
import { quote } from '../../call/violations.ts';
import {
  type Filter,
  type FilterField,
  fieldNamed,
  fieldNames,
  type Order,
  textsOf,
} from '../../filter/index.ts';
import { type HostRow, rowOf } from '../../fleet-view/index.ts';
import { idOfKey, orUnavailable, sharedRecordOf } from '../../records/index.ts';
import { hostFields } from './host-fields.ts';

/** Rows between two reads of the clock. */
const stepRows = 250;
/** Unreadable hosts that a list names. */
const unreadableMax = 100;
/** The most groups of one response. */
const groupsMax = 1_000;
/** The most hosts that a sorted list may skip: all of them are kept in order while it is made. */
const sortedSkipMax = 10_000;

type ListHostsResponse = MessageInitShape<typeof ListHostsResponseSchema>;

/** Handles one ListHosts. */
export async function listHosts(
  deps: RpcDependencies,
  request: ListHostsRequest,
): Promise<ListHostsResponse> {
  const { rack, orderBy, pageToken, skip = 0 } = request;
  const { store, fleetView } = deps;
  const filter = filterOf(hostFields, request.filter);
  const order = orderOf(hostFields, orderBy);
  if (order !== undefined) checkSkip(skip);
  await checkRackFilter(store, rack);
  const isPlain = request.filter === '' && orderBy === '';
  const bound = isPlain ? rack : JSON.stringify([rack, request.filter, orderBy]);
  const search: HostSearch = { filter, rack: rack || undefined };
  const read = inSlices(deps.clock, (entry) => readMatch(deps, search, entry, request.view));
  // A list of everything does not wait for the view. Without the view, a caller with a scope would
  // read all hosts to find its own.
  const isEverywhere = rack === '' && isUnscoped(deps.principal.scope);
  const isWhole = isPlain && isEverywhere && skip === 0;
  if (!isWhole) await fleetView.caughtUp();
  const list = (): Promise<Page<Host>> => {
    if (order !== undefined) {
      return sortedPage(store, sortedHosts(deps, search, order, read), request, bound);
    }
    if (isWhole) return listPage(store, 'hosts', request, bound, read);
    const found = (after: string) => entriesMatching(deps, search, after, skip);
    return pageOf(store, found, request, bound, read);
  };
  const { items, nextPageToken } = await list();
  const unreadable = pageToken === '' ? unreadableHosts(deps) : [];
  return { hosts: [...items], nextPageToken, unreadable };
}

function checkSkip(skip: number): void {
  if (skip <= sortedSkipMax) return;
  const description = `is ${skip}; with order_by it must be at most ${sortedSkipMax}`;
  throw invalidArgument([{ field: 'skip', description }]);
}

/** Handles one CountHosts. */
export async function countHosts(
  deps: RpcDependencies,
  { filter, groupBy }: CountHostsRequest,
): Promise<MessageInitShape<typeof CountHostsResponseSchema>> {
  const search = { filter: filterOf(hostFields, filter) };
  const group = groupBy === '' ? undefined : groupOf(groupBy);
  await deps.fleetView.caughtUp();
  const isOfAll = filter === '' && isUnscoped(deps.principal.scope);
  const known = isOfAll ? countsKnown(deps, groupBy) : undefined;
  const { total, counts } = known ?? (await countMatching(deps, search, group));
  const groups = [...counts]
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
  return {
    total,
    groups: groups.slice(0, groupsMax),
    groupsLeftOut: Math.max(0, groups.length - groupsMax),
    unreadable: isUnscoped(deps.principal.scope) ? deps.fleetView.counts().unreadable.length : 0,
  };
}

interface HostCounts {
  readonly total: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** The count that the view already has; undefined: it has none. */
function countsKnown({ fleetView }: RpcDependencies, groupBy: string): HostCounts | undefined {
  const { hosts, byState, unreadable } = fleetView.counts();
  const total = hosts - unreadable.length;
  switch (groupBy) {
    case '':
      return { total, counts: new Map() };
    case 'rack':
    case 'credential':
      return { total, counts: fleetView.countsBy(groupBy) };
    case 'state': {
      const word = (state: HostState) => enumWord(HostStateSchema, state) ?? '';
      return { total, counts: new Map([...byState].map(([state, size]) => [word(state), size])) };
    }
    default:
      return undefined;
  }
}

async function countMatching(
  deps: RpcDependencies,
  search: HostSearch,
  group: FilterField<HostRow> | undefined,
): Promise<HostCounts> {
  let total = 0;
  const counts = new Map<string, number>();
  for await (const rows of rowsMatching(deps, search)) {
    total += rows.length;
    if (group === undefined) continue;
    for (const row of rows) {
      const values = textsOf(group, row);
      for (const value of values.length > 0 ? values : ['']) {
        counts.set(value, (counts.get(value) ?? 0) + 1);
      }
    }
  }
  return { total, counts };
}

function groupOf(name: string): FilterField<HostRow> {
  const found = fieldNamed(hostFields, name);
  if (found !== undefined) return found.field;
  const description = `is ${quote(name)}; it must be a field: ${fieldNames(hostFields)}`;
  throw invalidArgument([{ field: 'group_by', description }]);
}

/** The search conditions. */
export interface HostSearch {
  readonly filter: Filter<HostRow>;
  /** "racks/RACK"; undefined: everywhere. */
  readonly rack?: RackName | undefined;
}

/**
 * Rows in the caller's scope that match, after the id `after`, in the order of their ids, a slice
 * at a time: a step of an async loop costs more than most filters.
 */
export async function* rowsMatching(
  { fleetView, clock, principal }: Pick<RpcDependencies, 'fleetView' | 'clock' | 'principal'>,
  { filter, rack }: HostSearch,
  after = '',
): AsyncGenerator<readonly HostRow[], void, undefined> {
  let found: HostRow[] = [];
  let rowsRead = 0;
  let beganMs = clock.nowMs();
  const having = new Map([
    ...filter.required,
    ...(rack === undefined ? [] : ([['rack', rack]] as const)),
  ]);
  for (const row of fleetView.rows(after, having, locationsOf(principal.scope))) {
    rowsRead += 1;
    if (rowsRead % stepRows === 0 && clock.nowMs() - beganMs >= sliceMs) {
      yield found;
      found = [];
      await pause(clock, 0);
      beganMs = clock.nowMs();
    }
    if (row.kind !== 'host') continue;
    if (rack !== undefined && row.rack !== rack) continue;
    const location = { rack: row.rack, pool: row.labels[poolLabel] ?? '' };
    if (isInScope(principal.scope, location) && filter.matches(row)) found.push(row);
  }
  yield found;
}

function sortedHosts(
  { store, ...deps }: RpcDependencies,
  search: HostSearch,
  order: Order<HostRow>,
  read: (entry: Entry) => Promise<Host | undefined>,
): SortedRows<HostRow, Host> {
  return {
    rows: rowsMatching(deps, search),
    order,
    nameOf: ({ hostId }) => hostId,
    read: async ({ hostId }) => {
      const entry = await orUnavailable(store.get(hostKey(hostId)));
      if (entry.kind !== 'found') return undefined;
      const item = await read(entry);
      return item && { item, bytes: entry.value.byteLength };
    },
  };
}

/** Present records of these rows after the key `after`; the first `skip` are left out. */
export async function* entriesMatching(
  deps: Pick<RpcDependencies, 'store' | 'fleetView' | 'clock' | 'principal'>,
  search: HostSearch,
  after = '',
  skip = 0,
): AsyncGenerator<Entry, void, undefined> {
  const behind = after === '' ? '' : idOfKey(after);
  let left = skip;
  for await (const rows of rowsMatching(deps, search, behind)) {
    const keys = rows.slice(left).map(({ hostId }) => hostKey(hostId));
    left -= Math.min(left, rows.length);
    yield* entriesOf(deps.store, keys);
  }
}

/** Invariant 2. A record that cannot be decoded matches nothing. */
async function readMatch(
  deps: RpcDependencies,
  { filter, rack }: HostSearch,
  entry: Entry,
  view: HostView,
) {
  const { store } = deps;
  const decode = (each: Entry) => sharedRecordOf(store, wire.HostRecordSchema, each);
  const row = rowOf(entry, decode);
  if (row.kind !== 'host' || (rack !== undefined && row.rack !== rack)) return undefined;
  if (!filter.matches(row)) return undefined;
  const facts = view === HostView.BASIC ? undefined : await readFacts(deps, row.hostId);
  return presentHost(deps, decode(entry), entry.revision, facts);
}

/** Their scope is unknown. */
export function unreadableHosts({
  fleetView,
  principal,
}: Pick<RpcDependencies, 'fleetView' | 'principal'>) {
  if (!isUnscoped(principal.scope)) return [];
  const { unreadable } = fleetView.counts();
  return unreadable.slice(0, unreadableMax).map(({ hostId, reason }) => ({
    name: `hosts/${hostId}`,
    reason,
  }));
}
