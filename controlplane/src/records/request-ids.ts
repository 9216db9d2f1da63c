/**
 * Ids of applied requests in a record, so that each is applied once and a repeated one gets the
 * same response.
 *
 * Must not: keep more than a record has room for.
 */
import type { RequestId } from '@rackwright/messages';

/** The most ids of a record, besides the permanent ones. */
const requestIdsMax = 32;

/**
 * A request id in the record's form; undefined when none was given. Ids of different methods are
 * distinct, so that a request of one method never counts for another.
 */
export function appliedId(method: string, requestId: RequestId): string | undefined {
  return requestId === '' ? undefined : `${method}:${requestId}`;
}

/** Whether the request with this id has been applied to the record; never one without an id. */
export function hasApplied(
  record: { readonly requestIds: readonly RequestId[] } | undefined,
  id: string | undefined,
): boolean {
  return id !== undefined && id !== '' && record?.requestIds.includes(id) === true;
}

/**
 * The ids with this one added, if there is one: the oldest are removed, but never the last that
 * `stays`.
 */
export function withApplied(
  ids: readonly string[],
  id: string | undefined,
  stays: (id: string) => boolean = () => false,
): string[] {
  if (id === undefined || id === '') return [...ids];
  const all = [...ids, id];
  const others = all.filter((each) => !stays(each));
  return [...all.filter(stays).slice(-1), ...others.slice(-requestIdsMax)];
}
