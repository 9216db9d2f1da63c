/** Prints resources: as tables and fields for people, as JSON, YAML or names for programs. */
import {
  type DescMessage,
  type JsonValue,
  type MessageShape,
  toJson,
  toJsonString,
} from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import { stringify } from 'yaml';
import type { CommandIo } from '../command-io.ts';
import { UsageError } from '../failure.ts';
import type { OutputKind } from './kinds.ts';
import { formatFields, formatTable, type TextColumn } from './table.ts';

/** The kinds for programs: the whole message, or the names of its resources. */
type ProgramKind = Exclude<OutputKind, 'table' | 'wide'>;

/** Whether the output is the message itself; otherwise people read it. */
export function isForPrograms(output: OutputKind): output is ProgramKind {
  switch (output) {
    case 'table':
    case 'wide':
      return false;
    case 'json':
    case 'yaml':
    case 'name':
      return true;
  }
}

/** Fields without presence are always there; unset optional ones never are. */
const jsonOptions = { alwaysEmitImplicit: true } as const;

/** Prints lines on standard output. */
export function printLines({ out }: CommandIo, lines: readonly string[]): void {
  if (lines.length > 0) out.write(`${lines.join('\n')}\n`);
}

/**
 * Prints a message: as indented JSON, as YAML, or the names of its resources, one a line. Throws
 * `UsageError` when names are asked for where there are none.
 */
export function printAs<D extends DescMessage>(
  io: CommandIo,
  output: ProgramKind,
  schema: D,
  message: MessageShape<D>,
): void {
  if (output === 'name') printLines(io, namesOf(schema, message));
  else printValue(io, output, toJson(schema, message, jsonOptions));
}

/** Prints one of many messages: a line of JSON, a YAML document, or names. */
export function printEvent<D extends DescMessage>(
  io: CommandIo,
  output: ProgramKind,
  schema: D,
  message: MessageShape<D>,
): void {
  if (output === 'json') io.out.write(`${toJsonString(schema, message, jsonOptions)}\n`);
  else {
    if (output === 'yaml') printLines(io, ['---']);
    printAs(io, output, schema, message);
  }
}

/** Prints a value that is no message. Throws `UsageError` when names are asked for: it has none. */
export function printValue({ out }: CommandIo, output: ProgramKind, value: JsonValue): void {
  if (output === 'name') throw noNames();
  out.write(
    output === 'json' ? `${JSON.stringify(value, undefined, 2)}\n` : stringify(value, yamlOptions),
  );
}

/** Long texts stay on one line, and nothing is written as a reference to something else. */
const yamlOptions = { lineWidth: 0, aliasDuplicateObjects: false } as const;

function noNames(): UsageError {
  return new UsageError('-o name prints names of resources, and this has none; try -o json');
}

/** The name of a resource, or the names of those that an answer or an event holds. */
function namesOf(schema: DescMessage, message: MessageShape<DescMessage>): string[] {
  const own = nameIn(schema, message);
  if (own !== undefined) return [own];
  const seen = reflect(schema, message);
  for (const field of schema.fields) {
    if (field.fieldKind === 'message' && seen.isSet(field)) {
      const name = nameIn(field.message, seen.get(field).message);
      if (name !== undefined) return [name];
    }
    if (field.fieldKind === 'list' && field.listKind === 'message' && isNamed(field.message)) {
      const items = [...seen.get(field)] as { message: MessageShape<DescMessage> }[];
      return items.map((item) => nameIn(field.message, item.message) ?? '');
    }
  }
  throw noNames();
}

function isNamed({ field }: DescMessage): boolean {
  return field['name']?.fieldKind === 'scalar';
}

function nameIn(schema: DescMessage, message: MessageShape<DescMessage>): string | undefined {
  const field = schema.field['name'];
  if (field?.fieldKind !== 'scalar') return undefined;
  return String(reflect(schema, message).get(field));
}

/** Prints a table that fits the terminal; `wide` is whole, and has all of the columns. */
export function printTable<T>(
  io: CommandIo,
  output: OutputKind,
  columns: readonly TextColumn<T>[],
  rows: readonly T[],
): void {
  const isWide = output === 'wide';
  const shown = columns.filter(({ wideOnly }) => isWide || wideOnly !== true);
  printLines(io, formatTable(shown, rows, isWide ? undefined : io.out.columns));
}

/** Prints names and values of one resource. */
export function printFields(
  io: CommandIo,
  fields: readonly (readonly [name: string, value: string])[],
): void {
  printLines(io, formatFields(fields));
}
