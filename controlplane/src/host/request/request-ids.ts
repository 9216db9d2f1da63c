/** The id of the request that created a host: the host remembers it for as long as it is there. */

/** The method under which it is remembered. */
export const createMethod = 'create';

export function isCreation(id: string): boolean {
  return id.startsWith(`${createMethod}:`);
}
