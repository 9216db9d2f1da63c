/** The id of the request that created a host: the host keeps it for its whole life. */

/** The method name in the record. */
export const createMethod = 'create';

export function isCreation(id: string): boolean {
  return id.startsWith(`${createMethod}:`);
}
