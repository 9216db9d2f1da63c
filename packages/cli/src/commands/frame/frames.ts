/** Commands that every kind of resource has, of the same frame: flags, names, both outputs. */
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';

export const sharedFlags = { ...connectionFlags, ...outputFlag };
export const sharedAliases = { o: 'output' } as const;

interface ListFrame<D extends DescMessage, Item> {
  readonly brief: string;
  /** All of them, page by page. */
  readonly read: (io: CommandIo, flags: SharedFlags) => Promise<Item[]>;
  /** What `-o json` prints. */
  readonly schema: D;
  readonly answer: (items: Item[]) => MessageInitShape<D>;
  readonly columns: (io: CommandIo) => readonly TextColumn<Item>[];
}

/** "list" */
export function listCommand<D extends DescMessage, Item>(frame: ListFrame<D, Item>) {
  return buildCommand({
    docs: { brief: frame.brief },
    parameters: { flags: sharedFlags, aliases: sharedAliases },
    async func(this: CliContext, flags: SharedFlags) {
      const items = await frame.read(this.io, flags);
      if (isForPrograms(flags.output)) {
        printAs(this.io, flags.output, frame.schema, create(frame.schema, frame.answer(items)));
      } else printTable(this.io, flags.output, frame.columns(this.io), items);
    },
  });
}

interface OneFrame<Item> {
  readonly brief: string;
  /** "racks" */
  readonly collection: string;
  /** The argument's placeholder, and its description. */
  readonly argument: readonly [placeholder: string, brief: string];
  readonly call: (io: CommandIo, flags: SharedFlags, name: string) => Promise<Item>;
  readonly show: (io: CommandIo, flags: SharedFlags, item: Item) => void;
}

/** A command of one resource by its name, "get" or "delete", which shows the answer. */
export function oneCommand<Item>({ brief, collection, argument, call, show }: OneFrame<Item>) {
  return buildCommand({
    docs: { brief },
    parameters: {
      flags: sharedFlags,
      positional: idArgument(...argument),
      aliases: sharedAliases,
    },
    async func(this: CliContext, flags: SharedFlags, id: string) {
      const item = await call(this.io, flags, resourceName(collection, id));
      show(this.io, flags, item);
    },
  });
}

/** Shows a removed resource: as JSON, or "NAME deleted". */
export function showGone<D extends DescMessage>(schema: D, text: string) {
  return (
    io: CommandIo,
    { output }: SharedFlags,
    gone: MessageShape<D> & { name: string },
  ): void => {
    if (isForPrograms(output)) printAs(io, output, schema, gone);
    else printLines(io, [`${gone.name} ${text}`]);
  };
}
