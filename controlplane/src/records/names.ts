/** The ids in the names of resources ("racks/r1") and in the keys of their records ("racks.r1"). */

/** The part after the collection in a resource's name; empty without a name. */
export function idOf(name = ''): string {
  return name.slice(name.indexOf('/') + 1);
}

/** The part after the collection in a record's key. */
export function idOfKey(key: string): string {
  return key.slice(key.indexOf('.') + 1);
}
