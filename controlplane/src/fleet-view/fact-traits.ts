/** Hosts by the traits of their last inventory, which stands in their facts. */
import { fromBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { CollectionKind } from './collection.ts';
import { traitKeys, traitsOf } from './traits.ts';

/** Of each host's facts, the keys by which it is found. */
export const factTraits: CollectionKind<readonly string[]> = {
  prefix: 'facts',
  keptOf: ({ value }) => {
    const { inventory } = fromBinary(wire.HostFactsSchema, value);
    return inventory === undefined ? undefined : traitKeys(traitsOf(inventory));
  },
  keysOf: (keys) => keys,
};
