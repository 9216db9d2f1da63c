/** Prints resources: as tables and fields for people, as JSON for programs. */
import { type DescMessage, type MessageShape, toJsonString } from '@bufbuild/protobuf';
import type { World } from '../world.ts';
import { type Column, formatFields, formatTable } from './table.ts';

/** Value of `-o`. */
export type OutputKind = 'table' | 'json';

/** Fields without presence are always there; unset optional ones never are. */
const jsonOptions = { alwaysEmitImplicit: true } as const;

/** Prints lines on standard output. */
export function printLines({ out }: World, lines: readonly string[]): void {
  if (lines.length > 0) out.write(`${lines.join('\n')}\n`);
}

/** Prints a message as indented JSON. */
export function printJson<D extends DescMessage>(
  { out }: World,
  schema: D,
  message: MessageShape<D>,
): void {
  out.write(`${toJsonString(schema, message, { ...jsonOptions, prettySpaces: 2 })}\n`);
}

/** Prints a message as one line of JSON. */
export function printJsonLine<D extends DescMessage>(
  { out }: World,
  schema: D,
  message: MessageShape<D>,
): void {
  out.write(`${toJsonString(schema, message, jsonOptions)}\n`);
}

/** Prints a table that fits the terminal. */
export function printTable<T>(
  world: World,
  columns: readonly Column<T>[],
  rows: readonly T[],
): void {
  printLines(world, formatTable(columns, rows, world.out.columns));
}

/** Prints names and values of one resource. */
export function printFields(
  world: World,
  fields: readonly (readonly [name: string, value: string])[],
): void {
  printLines(world, formatFields(fields));
}
