/**
 * Ids of the requests that a record remembers, so that each is applied once and answers the same
 * when it is repeated.
 *
 * Must not: keep more than a record has room for.
 */

/** How many a record remembers, beside those that stay. */
const requestIdsMax = 32;

/**
 * A request id as records remember it; undefined when none was given. Those of different methods
 * are kept apart, so that one cannot answer another.
 */
export function appliedId(method: string, requestId: string): string | undefined {
  return requestId === '' ? undefined : `${method}:${requestId}`;
}

/** Whether the request with this id has been applied to the record; never one without an id. */
export function hasApplied(
  record: { readonly requestIds: readonly string[] } | undefined,
  id: string | undefined,
): boolean {
  return id !== undefined && id !== '' && record?.requestIds.includes(id) === true;
}

/** The ids with one more, if it is one: the oldest go, but never the last of those that `stays`. */
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
