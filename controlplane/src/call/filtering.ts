/** Lists with the filter and the order of a request. */
import { invalidArgument } from '@rackwright/messages';
import { parsedJson } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import {
  type Filter,
  FilterError,
  type FilterFields,
  type Order,
  parseFilter,
  parseOrder,
  type SortKey,
} from '../filter/index.ts';
import { type ListPageRequest, type Page, pageBytesMax, pageSizeOf } from './paging.ts';
import { badToken, formatPageToken, parsePageToken } from './position.ts';

/** The filter of a request. Throws `invalidArgument` with the position of the error. */
export function filterOf<T>(fields: FilterFields<T>, text: string): Filter<T> {
  return refusing('filter', () => parseFilter(text, fields));
}

/** The order of a request; undefined when it has none. Throws as `filterOf`. */
export function orderOf<T>(fields: FilterFields<T>, text: string): Order<T> | undefined {
  return refusing('order_by', () => parseOrder(text, fields));
}

function refusing<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    throw invalidArgument([{ field, description: error.message }]);
  }
}

/** The rows to sort, and how a listed row is read. */
export interface SortedRows<R, T> {
  /** In slices, as they are found. */
  readonly rows: AsyncIterable<readonly R[]>;
  readonly order: Order<R>;
  /** Unique; of two rows that are equal otherwise, the lesser name comes first. */
  readonly nameOf: (row: R) => string;
  /** The item, with its size in bytes; undefined: it no longer exists. */
  readonly read: (row: R) => Promise<{ readonly item: T; readonly bytes: number } | undefined>;
}

interface SortPosition {
  readonly key: SortKey;
  readonly name: string;
}

/**
 * One page of the rows in their order. It keeps at most as many rows in memory as the page and
 * `skip` need. It begins after the position where the previous page ended, also when rows changed
 * since. `filter` as in `listPage`.
 */
export async function sortedPage<R, T>(
  store: StateStore,
  { rows, order, nameOf, read }: SortedRows<R, T>,
  request: ListPageRequest & { readonly skip?: number | undefined },
  filter: string,
): Promise<Page<T>> {
  const size = pageSizeOf(request.pageSize);
  const { skip = 0 } = request;
  const compare = (a: SortPosition, b: SortPosition) =>
    order.compare(a.key, b.key) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  const after = positionOf(parsePageToken(store, filter, request.pageToken), order.length);
  const sorted: (SortPosition & { readonly row: R })[] = [];
  for await (const slice of rows) {
    for (const row of slice) {
      const position = { key: order.keyOf(row), name: nameOf(row), row };
      if (after !== undefined && compare(position, after) <= 0) continue;
      insert(sorted, position, compare, skip + size + 1);
    }
  }
  const first = sorted.slice(skip);
  const items: T[] = [];
  let [bytes, at] = [0, 0];
  for (; at < Math.min(size, first.length); at += 1) {
    const found = await read((first[at] as (typeof first)[number]).row);
    if (found === undefined) continue;
    bytes += found.bytes;
    if (items.length > 0 && bytes > pageBytesMax) break;
    items.push(found.item);
  }
  const last = first[at - 1];
  if (last === undefined || at === first.length) return { items, nextPageToken: '' };
  const position = JSON.stringify([...last.key, last.name]);
  return { items, nextPageToken: formatPageToken(store, filter, position) };
}

/** A request for a list whose items are in memory, such as the runs of one host. */
export interface ListRequest extends ListPageRequest {
  readonly filter: string;
  readonly orderBy: string;
}

/** Items in memory, and the fields for filter and order. */
export interface ListedItems<T> {
  readonly fields: FilterFields<T>;
  readonly items: AsyncIterable<readonly T[]> | readonly (readonly T[])[];
  readonly nameOf: (item: T) => string;
  readonly bytesOf: (item: T) => number;
  /** The default order. */
  readonly usually: string;
}

/** One page of matching items, in the requested order. Throws `invalidArgument`. */
export async function pageOfItems<T>(
  store: StateStore,
  { fields, items, nameOf, bytesOf, usually }: ListedItems<T>,
  request: ListRequest,
  parent: string,
): Promise<Page<T>> {
  const { matches } = filterOf(fields, request.filter);
  const order = orderOf(fields, request.orderBy) ?? orderOf(fields, usually);
  if (order === undefined) throw new Error('a list has no usual order');
  async function* rows(): AsyncGenerator<readonly T[], void, undefined> {
    for await (const slice of items) yield slice.filter(matches);
  }
  const read = async (item: T) => ({ item, bytes: bytesOf(item) });
  const bound = JSON.stringify([parent, request.filter, request.orderBy]);
  return await sortedPage(store, { rows: rows(), order, nameOf, read }, request, bound);
}

/** Inserts into a sorted list, of which only the first `most` are kept. */
function insert<P extends SortPosition>(
  sorted: P[],
  position: P,
  compare: (a: SortPosition, b: SortPosition) => number,
  most: number,
): void {
  const last = sorted.at(-1);
  if (sorted.length >= most && last !== undefined && compare(position, last) >= 0) return;
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(sorted[middle] as P, position) < 0) low = middle + 1;
    else high = middle;
  }
  sorted.splice(low, 0, position);
  if (sorted.length > most) sorted.pop();
}

/** Decodes the position at which a page ends. Throws `invalidArgument` for any other text. */
function positionOf(text: string, length: number): SortPosition | undefined {
  if (text === '') return undefined;
  const key = parsedList(text);
  const name = key.pop();
  const isKey = key.every((each) => each === null || ['string', 'number'].includes(typeof each));
  if (typeof name !== 'string' || key.length !== length || !isKey) {
    throw badToken('names no place in the order; send next_page_token unchanged, or none');
  }
  return { key: key as (string | number | null)[], name };
}

function parsedList(text: string): unknown[] {
  const parsed = parsedJson(text);
  return Array.isArray(parsed) ? parsed : [];
}
