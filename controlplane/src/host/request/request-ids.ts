/** The ids of requests that a host remembers, so that each is applied once. */

/** How many it remembers; that of its creation stays beside them. */
const requestIdsMax = 32;

/** The method under which the creation of a host is remembered. */
export const createMethod = 'create';

export function isCreation(id: string): boolean {
  return id.startsWith(`${createMethod}:`);
}

/** The ids with one more; the oldest go, but never that of the host's own creation. */
export function keptIds(before: readonly string[], id: string | undefined): string[] {
  if (id === undefined || id === '') return [...before];
  const creation = isCreation(id) ? [id] : before.filter(isCreation);
  const others = [...before, id].filter((each) => !isCreation(each)).slice(-requestIdsMax);
  return [...creation, ...others];
}
