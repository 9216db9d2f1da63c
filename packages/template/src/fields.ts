/** Reads the fields of maps: types, bounds and unknown names, each problem at its position. */
import type { Node, ScalarNode } from './document.ts';
import type { Surroundings } from './expression/references.ts';
import { didYouMeanText, type Problems, quoted, suggestionText } from './problems.ts';
import { type TextCheck, type TextTemplate, textTemplate } from './text.ts';

/** The parts that reading needs at every place. */
export interface ParseContext {
  readonly source: string;
  readonly problems: Problems;
}

export interface Field {
  readonly node: Node;
  /** The position of its name, or of the list item. */
  readonly at: number;
  readonly path: string;
}

export type Fields = ReadonlyMap<string, Field>;

const nothing: Fields = new Map();

/** The fields of a map; unknown ones are problems. */
export function fieldsOf(reading: ParseContext, field: Field, known: readonly string[]): Fields {
  const fields = new Map<string, Field>();
  for (const each of entriesOf(reading, field)) {
    if (known.includes(each.name)) fields.set(each.name, each);
    else if (!reading.problems.isFull) {
      const suggestion = suggestionText(each.name, known);
      const message = `there is no field ${quoted(each.name)} here${suggestion}`;
      reading.problems.add(each.at, each.path, message);
    }
  }
  return fields.size === 0 ? nothing : fields;
}

/** Names that people choose, with their values. */
export function entriesOf(
  { problems }: ParseContext,
  { node, path }: Field,
): readonly (Field & { readonly name: string })[] {
  if (node.kind !== 'map') {
    problems.add(node.at, path, `must be a map of names and values, not ${kindOf(node)}`);
    return [];
  }
  return node.entries.map(({ key, at, value }) => ({
    name: key,
    node: value,
    at,
    path: path === '' ? key : `${path}.${key}`,
  }));
}

export function itemsOf({ problems }: ParseContext, { node, path }: Field): readonly Field[] {
  if (node.kind === 'list') {
    return node.items.map((item, index) => ({
      node: item,
      at: item.at,
      path: `${path}[${index}]`,
    }));
  }
  problems.add(node.at, path, `must be a list, not ${kindOf(node)}`);
  return [];
}

/** A text in which nothing is filled in. */
export function plainText(
  reading: ParseContext,
  field: Field,
  check: TextCheck,
): string | undefined {
  const scalar = textScalar(reading, field);
  if (scalar === undefined) return undefined;
  const { problems } = reading;
  const problem = scalar.text.includes('{{') ? 'takes no {{ … }}' : check(scalar.text);
  if (problem === undefined) return scalar.text;
  problems.add(scalar.at, field.path, problem);
  return undefined;
}

export function choice<T extends string>(
  reading: ParseContext,
  field: Field,
  values: readonly T[],
): T | undefined {
  const { problems } = reading;
  const { node, path } = field;
  // YAML readers of 1.1 have taught people that "off" may be a boolean.
  if (node.kind === 'scalar' && values.some((value) => value === node.text)) return node.text as T;
  const found = node.kind === 'scalar' ? quoted(node.text) : kindOf(node);
  const hint = node.kind === 'scalar' ? didYouMeanText(node.text, values) : '';
  problems.add(node.at, path, `must be one of ${values.join(', ')}, not ${found}${hint}`);
  return undefined;
}

export function parseBoolean(
  { problems }: ParseContext,
  { node, path }: Field,
): boolean | undefined {
  if (node.kind === 'scalar' && node.type === 'boolean') return node.text === 'true';
  problems.add(node.at, path, `must be true or false, not ${kindOf(node)}`);
  return undefined;
}

/** A whole number between 0 and `maximum`. */
export function parseWholeNumber(
  { problems }: ParseContext,
  { node, path }: Field,
  maximum: number,
): number | undefined {
  const value = node.kind === 'scalar' && node.type === 'integer' ? Number(node.text) : Number.NaN;
  if (value >= 0 && value <= maximum) return value;
  const found = node.kind === 'scalar' ? quoted(node.text) : kindOf(node);
  problems.add(node.at, path, `must be a whole number from 0 to ${maximum}, not ${found}`);
  return undefined;
}

/** A text with expressions; with `lenient` also a number or a boolean, as it is written. */
export function interpolated(
  reading: ParseContext,
  field: Field,
  around: Surroundings,
  check: TextCheck,
  { lenient = false }: { readonly lenient?: boolean } = {},
): TextTemplate | undefined {
  const scalar = textScalar(reading, field, { lenient });
  if (scalar === undefined) return undefined;
  return textTemplate({ ...reading, scalar, path: field.path, around }, check);
}

export function textScalar(
  { problems }: ParseContext,
  { node, path }: Field,
  { lenient = false }: { readonly lenient?: boolean } = {},
): ScalarNode | undefined {
  if (node.kind === 'scalar') {
    if (node.type === 'text') return node;
    if (lenient && (node.type === 'integer' || node.type === 'boolean')) return node;
    const hint = node.type === 'null' ? '' : `; put it in quotes: ${quoted(node.text)}`;
    problems.add(node.at, path, `must be a text, not ${kindOf(node)}${hint}`);
    return undefined;
  }
  // A value in braces has been reported already.
  if (node.kind === 'list' || node.isWhole) {
    problems.add(node.at, path, `must be a text, not ${kindOf(node)}`);
  }
  return undefined;
}

const scalarKinds = {
  text: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'nothing',
} as const;

function kindOf(node: Node): string {
  if (node.kind === 'scalar') return scalarKinds[node.type];
  return node.kind === 'map' ? 'a map' : 'a list';
}

/** One line or more, of a bounded number of characters. */
export function upTo(charsMax: number): TextCheck {
  return (text) =>
    text.length <= charsMax
      ? undefined
      : `has ${text.length} characters; at most ${charsMax} are taken`;
}

/** The same, and at least one. */
export function someUpTo(charsMax: number): TextCheck {
  return (text) => (text.trim() === '' ? 'must not be empty' : upTo(charsMax)(text));
}
