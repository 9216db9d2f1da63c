/**
 * Etags, page tokens and watch positions: opaque texts that clients return unchanged. Each contains
 * the store's incarnation, so that one from before a restore is recognized and not trusted.
 */
import {
  ApiFailure,
  aborted,
  asIncarnation,
  type Incarnation,
  invalidArgument,
} from '@rackwright/messages';
import { parsedJson } from '@rackwright/platform';
import { type StateStore, type StoreRevision, storeKey } from '@rackwright/store';

const shape = /^([A-Za-z0-9_-]{1,64})\.(\d{1,16})$/;

/** "<incarnation>.<revision>": etag of a resource, or position in a watch. */
export function formatPosition(store: StateStore, revision: StoreRevision): string {
  return `${store.incarnation}.${revision}`;
}

interface Position {
  readonly incarnation: Incarnation;
  readonly revision: StoreRevision;
}

function parsePosition(text: string): Position | undefined {
  const match = shape.exec(text);
  if (match === null) return undefined;
  const [, incarnation, digits] = match;
  if (incarnation === undefined) return undefined;
  return { incarnation: asIncarnation(incarnation), revision: Number(digits) };
}

/**
 * The revision of an etag; undefined for the empty etag, which matches anything. Throws `aborted`
 * for another incarnation, and `invalidArgument` for an invalid etag.
 */
export function revisionOfEtag(store: StateStore, etag: string): StoreRevision | undefined {
  if (etag === '') return undefined;
  const position = parsePosition(etag);
  if (position === undefined) {
    const description = 'is no etag of this API; send the one that Get answered, or none';
    throw invalidArgument([{ field: 'etag', description }]);
  }
  if (position.incarnation === store.incarnation) return position.revision;
  throw aborted(
    'ETAG_OF_OTHER_INCARNATION',
    'The etag is from before the state store was restored. Read the resource and decide again.',
  );
}

/** Throws `aborted` unless `etag` is empty or stands for `revision`. */
export function checkEtag(
  store: StateStore,
  etag: string,
  revision: StoreRevision,
  name: string,
): void {
  const expected = revisionOfEtag(store, etag);
  if (expected === undefined || expected === revision) return;
  throw etagMismatch(name);
}

/** The resource has changed since its etag was read. */
export function etagMismatch(name: string): ApiFailure {
  return aborted(
    'ETAG_MISMATCH',
    `${name} has changed since this etag was read. Read it again and decide again.`,
  );
}

/** The revision to watch from. Throws `outOfRange` when the position is of another incarnation. */
export function revisionOfPosition(store: StateStore, position: string): StoreRevision {
  const parsed = parsePosition(position);
  if (parsed === undefined) {
    const description = 'is no position of this API; send the last one received, or none';
    throw invalidArgument([{ field: 'position', description }]);
  }
  if (parsed.incarnation === store.incarnation) return parsed.revision;
  throw startOver(
    'POSITION_OF_OTHER_INCARNATION',
    'The position is from before the state store was restored.',
  );
}

/** A watch cannot continue from its position. */
export function startOver(reason: string, why: string): ApiFailure {
  const message = `${why} Start again without a position: every resource is then sent anew.`;
  return new ApiFailure({ kind: 'outOfRange', reason, message });
}

/** The end of a page: the key of its last resource. */
export function formatPageToken(store: StateStore, filter: string, lastKey: string): string {
  return Buffer.from(JSON.stringify([store.incarnation, filter, lastKey])).toString('base64url');
}

/**
 * The key after which the page begins; '' for the first page. Throws `invalidArgument` when the
 * token is invalid, of another incarnation, or made for another filter.
 */
export function parsePageToken(store: StateStore, filter: string, token: string): string {
  if (token === '') return '';
  const [incarnation, madeFor, lastKey] = readToken(token);
  if (typeof lastKey !== 'string') {
    throw badToken('is no token of this API; send next_page_token unchanged, or none');
  }
  if (incarnation !== store.incarnation) {
    throw badToken('is from before the state store was restored; begin again without it');
  }
  if (madeFor !== filter) {
    throw badToken('belongs to a list with other filters; repeat them, or begin without it');
  }
  return lastKey;
}

/** As `parsePageToken`, for a list in the order of the store's keys: returns a key, or ''. */
export function parseKeyToken(store: StateStore, filter: string, token: string): string {
  const key = parsePageToken(store, filter, token);
  if (key === '' || isKey(key)) return key;
  throw badToken('names no resource; send next_page_token unchanged, or none');
}

function isKey(text: string): boolean {
  try {
    return storeKey(...text.split('.')) === text;
  } catch {
    // `storeKey` throws for parts that no key has.
    return false;
  }
}

function readToken(token: string): unknown[] {
  const parsed = parsedJson(Buffer.from(token, 'base64url').toString('utf8'));
  return Array.isArray(parsed) ? parsed : [];
}

/** The error for an invalid page token. */
export function badToken(description: string): ApiFailure {
  return invalidArgument([{ field: 'page_token', description }]);
}
