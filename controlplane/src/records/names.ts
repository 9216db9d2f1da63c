/** The ids in the names of resources ("racks/r1") and in the keys of their records ("racks.r1"). */

import type { HostId, HostName, RackId, RackName } from '@rackwright/messages';

/** The kind of the id in a name. A name without a kind has an id without one. */
export type IdIn<Name extends string> = '__kind' extends keyof Name
  ? Name extends HostName
    ? HostId
    : Name extends RackName
      ? RackId
      : string
  : string;

/** The part after the collection in a resource's name; empty without a name. */
export function idOf<Name extends string = ''>(name?: Name): IdIn<Name> {
  return (name?.slice(name.indexOf('/') + 1) ?? '') as IdIn<Name>;
}

/** The part after the collection in a record's key. */
export function idOfKey(key: string): string {
  return key.slice(key.indexOf('.') + 1);
}
