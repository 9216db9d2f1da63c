/** Values of expressions and their types. */

export type ValueType =
  | 'text'
  | 'integer'
  | 'boolean'
  | 'duration'
  | 'texts'
  | 'integers'
  | 'records'
  | 'record';

export interface Duration {
  readonly seconds: bigint;
  /** The source text: "90s". */
  readonly text: string;
}

/** Undefined: an unknown value, for example a label that a host lacks. It equals nothing. */
export type Value =
  | string
  | bigint
  | boolean
  | Duration
  | readonly Value[]
  | { readonly [field: string]: Value }
  | undefined;

/** The names of types in messages. */
export const typeNames: Readonly<Record<ValueType, string>> = {
  text: 'a text',
  integer: 'a whole number',
  boolean: 'true or false',
  duration: 'a duration',
  texts: 'a list of texts',
  integers: 'a list of whole numbers',
  records: 'a list of things with fields',
  record: 'a thing with fields',
};

export function isDuration(value: Value): value is Duration {
  return typeof value === 'object' && !Array.isArray(value) && 'seconds' in value;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Durations count as their seconds. */
export function comparable(value: Value): string | bigint | boolean | undefined {
  if (isDuration(value)) return value.seconds;
  return typeof value === 'object' ? undefined : value;
}

/** The text of a value; undefined for lists, records and unknown values. */
export function textOf(value: Value): string | undefined {
  if (isDuration(value)) return value.text;
  return typeof value === 'object' || value === undefined ? undefined : String(value);
}

/** A value as JSON; an unknown one is null. */
export function jsonOf(value: Value): string {
  if (value === undefined) return 'null';
  if (typeof value === 'bigint') return String(value);
  if (isDuration(value)) return JSON.stringify(value.text);
  if (isList(value)) return `[${value.map(jsonOf).join(',')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([name, each]) => `${JSON.stringify(name)}:${jsonOf(each)}`,
  );
  return `{${fields.join(',')}}`;
}
