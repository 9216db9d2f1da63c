/** Hosts by the traits of their last inventory, which is part of their facts. */
import { fromBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { CollectionKind } from './collection.ts';
import { traitKeys, traitsOf } from './traits.ts';

/** The keys for each host's facts. */
export const factTraits: CollectionKind<readonly string[]> = {
  prefix: 'facts',
  keptOf: ({ value }) => {
    const { inventory } = fromBinary(wire.HostFactsSchema, value);
    return inventory === undefined ? undefined : traitKeys(traitsOf(inventory));
  },
  keysOf: (keys) => keys,
};
