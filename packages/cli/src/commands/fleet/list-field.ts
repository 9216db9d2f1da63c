/** A list in the fleet's spec of which commands change one entry at a time, and show all. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type Fleet,
  FleetSchema,
  type FleetSpec,
  type FleetSpecSchema,
} from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import type { SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { withFleet } from './client.ts';

interface ListField<Item> {
  /** Its path in the fleet. */
  readonly path: `spec.${string}`;
  readonly of: (spec: FleetSpec) => readonly Item[];
  readonly as: (items: Item[]) => MessageInitShape<typeof FleetSpecSchema>;
  readonly columns: readonly TextColumn<Item>[];
}

/** How the commands of one such list change and show it. */
export function listField<Item>({ path, of, as, columns }: ListField<Item>) {
  const itemsOf = ({ spec }: Fleet): readonly Item[] => (spec === undefined ? [] : of(spec));
  const print = (io: CommandIo, { output }: SharedFlags, fleet: Fleet): void => {
    if (isForPrograms(output)) printAs(io, output, FleetSchema, fleet);
    else printTable(io, output, columns, itemsOf(fleet));
  };
  return {
    /** Sent with the etag: a concurrent change by another person is not overwritten. */
    async change(
      io: CommandIo,
      flags: SharedFlags,
      over: (now: readonly Item[]) => Item[],
    ): Promise<void> {
      const changed = await withFleet(io, flags, async (client) => {
        const fleet = await client.getFleet({});
        const spec = as(over(itemsOf(fleet)));
        return client.updateFleet({
          fleet: { etag: fleet.etag, spec },
          updateMask: { paths: [path] },
        });
      });
      print(io, flags, changed);
    },
    async show(io: CommandIo, flags: SharedFlags): Promise<void> {
      print(io, flags, await withFleet(io, flags, (client) => client.getFleet({})));
    },
  };
}

/** All but the entry of this name. Throws `UsageError` with `unknown` where there is none. */
export function without<Item>(
  now: readonly Item[],
  nameOf: (item: Item) => string,
  name: string,
  unknown: (names: readonly string[]) => string,
): Item[] {
  const left = now.filter((each) => nameOf(each) !== name);
  if (left.length < now.length) return left;
  throw new UsageError(unknown(now.map(nameOf)));
}
