/** Orders of lists: `order_by` of AIP-132, as "state, create_time desc". Pure. */
import { type FilterField, type FilterFields, fieldNamed, fieldNames } from './fields.ts';
import { FilterError, FilterReader } from './reader.ts';

const charsMax = 256;
const fieldsMax = 4;

/** The sort values of an item; null: the field is unset, which sorts first. */
export type SortKey = readonly (string | number | null)[];

/** A parsed order. */
export interface Order<T> {
  /** The number of values in a key. */
  readonly length: number;
  readonly keyOf: (item: T) => SortKey;
  /** Below 0: the first sorts before the second. */
  readonly compare: (a: SortKey, b: SortKey) => number;
}

interface Part<T> {
  readonly valueOf: (item: T) => string | number | null;
  readonly sign: 1 | -1;
}

/** The order; undefined for the empty text. Throws `FilterError`. */
export function parseOrder<T>(text: string, fields: FilterFields<T>): Order<T> | undefined {
  if (text.length > charsMax) {
    throw new FilterError(text, charsMax, `an order has at most ${charsMax} characters`);
  }
  const reader = new FilterReader(text);
  if (reader.isAtEnd) return undefined;
  const parts: Part<T>[] = [];
  do {
    if (parts.length === fieldsMax) reader.fail(`an order names at most ${fieldsMax} fields`);
    parts.push(readPart(reader, fields));
  } while (reader.takes(','));
  if (!reader.isAtEnd) reader.fail('a comma or the end has to come here');
  return {
    length: parts.length,
    keyOf: (item) => parts.map(({ valueOf }) => valueOf(item)),
    compare: (a, b) => {
      for (const [index, { sign }] of parts.entries()) {
        const order = compareValues(a[index] ?? null, b[index] ?? null);
        if (order !== 0) return order * sign;
      }
      return 0;
    },
  };
}

function readPart<T>(reader: FilterReader, fields: FilterFields<T>): Part<T> {
  const { at } = reader;
  const word = reader.word();
  const found = word === undefined ? undefined : fieldNamed(fields, word);
  if (found === undefined) {
    const problem = word === undefined ? 'a field has to stand here' : `there is no field ${word}`;
    return reader.fail(`${problem}; fields are ${fieldNames(fields)}`, at);
  }
  const valueOf = sortable(found.field);
  if (valueOf === undefined) {
    return reader.fail(`${found.name} has more than one value; nothing is sorted by it`, at);
  }
  const isDescending = reader.takesWord('desc');
  if (!isDescending) reader.takesWord('asc');
  return { valueOf, sign: isDescending ? -1 : 1 };
}

function sortable<T>(field: FilterField<T>): Part<T>['valueOf'] | undefined {
  switch (field.kind) {
    case 'text':
      return (item) => field.of(item) || null;
    case 'choice':
      return (item) => field.of(item) || null;
    case 'flag':
      return (item) => numberOfFlag(field.of(item));
    case 'number':
    case 'time':
      return (item) => field.of(item) ?? null;
    case 'texts':
    case 'map':
      return undefined;
  }
}

function numberOfFlag(flag: boolean | undefined): number | null {
  return flag === undefined ? null : Number(flag);
}

function compareValues(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}
