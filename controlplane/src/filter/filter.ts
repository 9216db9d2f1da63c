/**
 * Filters of lists: a part of AIP-160. Pure.
 *
 *   filter     = condition, { "AND", condition } | condition, { "OR", condition }
 *   condition  = [ "NOT" | "-" ], ( "(", filter, ")" | restriction )
 *   restriction = field, ( "=" | "!=" | "<" | "<=" | ">" | ">=" | ":" ), value
 *
 * Invariants:
 * 1. What is not understood is refused with its position. Nothing is left out or guessed.
 * 2. AND beside OR without parentheses is refused: AIP-160 binds OR more tightly than AND, which
 *    is not what most readers expect.
 * 3. `!=` holds exactly where `=` does not, so also where the field is unset.
 */
import {
  choiceNamed,
  choiceNames,
  type FilterField,
  type FilterFields,
  fieldNamed,
  fieldNames,
} from './fields.ts';
import {
  type Comparator,
  FilterError,
  FilterReader,
  type FilterValue,
  isKeyword,
} from './reader.ts';

const charsMax = 2_048;
const nestingMax = 32;

/** A parsed filter. */
export interface Filter<T> {
  readonly matches: (item: T) => boolean;
  /**
   * Values that fields must have in every match, by the fields' short names: texts in lower case
   * where case does not matter, and the numbers of choices.
   */
  readonly required: ReadonlyMap<string, string>;
}

type Holds<T> = (item: T) => boolean;

const nothing: ReadonlyMap<string, string> = new Map();

/** The filter; the empty text gives one that matches everything. Throws `FilterError`. */
export function parseFilter<T>(text: string, fields: FilterFields<T>): Filter<T> {
  if (text.length > charsMax) {
    throw new FilterError(text, charsMax, `a filter has at most ${charsMax} characters`);
  }
  const reader = new FilterReader(text);
  if (reader.isAtEnd) return { matches: () => true, required: nothing };
  const filter = new Parser(reader, fields).filter(0);
  if (!reader.isAtEnd) reader.fail('AND, OR or the end has to come here');
  return filter;
}

class Parser<T> {
  readonly #reader: FilterReader;
  readonly #fields: FilterFields<T>;

  constructor(reader: FilterReader, fields: FilterFields<T>) {
    this.#reader = reader;
    this.#fields = fields;
  }

  filter(depth: number): Filter<T> {
    const reader = this.#reader;
    const parts = [this.#condition(depth)];
    let joint: 'AND' | 'OR' | undefined;
    for (;;) {
      const { at } = reader;
      const next = (['AND', 'OR'] as const).find((word) => reader.takesWord(word));
      if (next === undefined) break;
      if (joint !== undefined && joint !== next) {
        reader.fail('AND and OR side by side need parentheses that say what belongs together', at);
      }
      joint = next;
      parts.push(this.#condition(depth));
    }
    const all = parts.map(({ matches }) => matches);
    if (joint === 'OR')
      return { matches: (item) => all.some((one) => one(item)), required: nothing };
    const required = new Map(parts.flatMap((part) => [...part.required]));
    return { matches: (item) => all.every((one) => one(item)), required };
  }

  #condition(depth: number): Filter<T> {
    const reader = this.#reader;
    const isNot = reader.takesWord('NOT') || reader.takes('-');
    const { at } = reader;
    if (!reader.takes('(')) return isNot ? not(this.#restriction()) : this.#restriction();
    if (depth >= nestingMax) {
      reader.fail(`parentheses are nested at most ${nestingMax} deep`, at);
    }
    const inner = this.filter(depth + 1);
    if (!reader.takes(')')) reader.fail('a ")" has to come here, or AND, or OR');
    return isNot ? not(inner) : inner;
  }

  #restriction(): Filter<T> {
    const reader = this.#reader;
    const { at } = reader;
    const word = reader.word();
    const fields = `fields are ${fieldNames(this.#fields)}`;
    if (word === undefined || isKeyword(word)) {
      return reader.fail(`the name of a field has to stand here; ${fields}`, at);
    }
    const found = fieldNamed(this.#fields, word);
    if (found === undefined) return reader.fail(`there is no field ${word}; ${fields}`, at);
    const atComparator = reader.at;
    const comparator = reader.comparator();
    if (comparator === undefined) {
      return reader.fail(`one of = != < <= > >= : has to follow ${word}`);
    }
    const value = reader.value();
    const { name, field } = found;
    const restriction: Restriction = { reader, name, comparator, atComparator, value };
    const isWhole = !value.startsAnyhow && !value.endsAnyhow;
    const matches = holds(field, restriction);
    const text = isWhole ? requiredText(field, restriction) : undefined;
    return { matches, required: text === undefined ? nothing : new Map([[name, text]]) };
  }
}

/** The value that the field must have; undefined: there is no single one. */
function requiredText<T>(field: FilterField<T>, restriction: Restriction): string | undefined {
  const { comparator, value } = restriction;
  switch (field.kind) {
    case 'text':
      return comparator === '=' ? wantedText(field, restriction) : undefined;
    case 'texts':
      return comparator === ':' ? folded(field, value.text) : undefined;
    case 'choice':
      return comparator === '=' ? String(choiceNamed(field.choices, value.text)) : undefined;
    default:
      return undefined;
  }
}

function not<T>({ matches }: Filter<T>): Filter<T> {
  return { matches: (item) => !matches(item), required: nothing };
}

/** A restriction, as parsed. */
interface Restriction {
  readonly reader: FilterReader;
  readonly name: string;
  readonly comparator: Comparator;
  readonly atComparator: number;
  readonly value: FilterValue;
}

function holds<T>(field: FilterField<T>, restriction: Restriction): Holds<T> {
  const { comparator, value } = restriction;
  if (comparator === ':' && value.startsAnyhow && value.text === '') return isSet(field);
  if (field.kind === 'map') return mapHolds(field, restriction);
  if (field.kind === 'texts') return listHolds(field, restriction);
  if (comparator === ':')
    return refuse(restriction, `is for lists and for ${restriction.name}:*, "is set"`);
  if (comparator === '!=') {
    const equal = holds(field, { ...restriction, comparator: '=' });
    return (item) => !equal(item);
  }
  switch (field.kind) {
    case 'text': {
      const wanted = wantedText(field, restriction);
      if (comparator === '=')
        return equalText(field, { ...restriction, value: { ...value, text: wanted } });
      const is = ordered[comparator];
      whole(restriction);
      return (item) => {
        const text = folded(field, field.of(item));
        return text !== '' && is(text < wanted ? -1 : text > wanted ? 1 : 0);
      };
    }
    case 'choice': {
      const wanted = choiceNamed(field.choices, whole(restriction));
      if (wanted === undefined) {
        return refuse(restriction, `is one of ${choiceNames(field.choices)}`, value.at);
      }
      if (comparator !== '=')
        return refuse(restriction, 'does not fit: there is no order here; use =');
      return (item) => field.of(item) === wanted;
    }
    case 'flag': {
      const wanted = { true: true, false: false }[whole(restriction)];
      if (wanted === undefined) return refuse(restriction, 'is true or false', value.at);
      if (comparator !== '=')
        return refuse(restriction, 'does not fit: there is no order here; use =');
      return (item) => field.of(item) === wanted;
    }
    case 'number':
      return compares(field.of, comparator, numberOf(restriction));
    case 'time':
      return compares(field.of, comparator, timeOf(restriction));
  }
}

const ordered: Readonly<Record<'<' | '<=' | '>' | '>=' | '=', (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '=': (order) => order === 0,
};

function compares<T>(
  of: (item: T) => number | undefined,
  comparator: keyof typeof ordered,
  wanted: number,
): Holds<T> {
  const is = ordered[comparator];
  return (item) => {
    const value = of(item);
    return value !== undefined && is(value - wanted);
  };
}

function isSet<T>(field: FilterField<T>): Holds<T> {
  switch (field.kind) {
    case 'text':
      return (item) => field.of(item) !== '';
    case 'texts':
      return (item) => field.of(item).length > 0;
    case 'choice':
      return (item) => field.of(item) !== 0;
    case 'flag':
    case 'number':
    case 'time':
      return (item) => field.of(item) !== undefined;
    case 'map':
      return (item) => Object.keys(field.of(item)).length > 0;
  }
}

function mapHolds<T>(field: FilterField<T> & { kind: 'map' }, restriction: Restriction): Holds<T> {
  const { name } = restriction;
  if (restriction.comparator !== ':') {
    return refuse(
      restriction,
      `does not fit: write ${name}.KEY = VALUE, or ${name}:KEY for "has it"`,
    );
  }
  const key = whole(restriction);
  return (item) => Object.hasOwn(field.of(item), key);
}

function listHolds<T>(
  field: FilterField<T> & { kind: 'texts' },
  restriction: Restriction,
): Holds<T> {
  if (restriction.comparator !== ':') {
    return refuse(
      restriction,
      `does not fit: this is a list; write ${restriction.name}:VALUE for "has it"`,
    );
  }
  const fits = pattern({ ...restriction.value, text: folded(field, restriction.value.text) });
  return (item) => field.of(item).some((each) => fits(folded(field, each)));
}

function equalText<T>(
  field: FilterField<T> & { kind: 'text' },
  restriction: Restriction,
): Holds<T> {
  const { value, name } = restriction;
  if (value.text === '' && (value.startsAnyhow || value.endsAnyhow)) {
    return refuse(
      restriction,
      `is no value to compare with; write ${name}:* for "is set"`,
      value.at,
    );
  }
  const fits = pattern(value);
  return (item) => fits(folded(field, field.of(item)));
}

function pattern({ text, startsAnyhow, endsAnyhow }: FilterValue): (of: string) => boolean {
  if (startsAnyhow && endsAnyhow) return (of) => of.includes(text);
  if (startsAnyhow) return (of) => of.endsWith(text);
  if (endsAnyhow) return (of) => of.startsWith(text);
  return (of) => of === text;
}

/** The text in the field's form: for a resource name its id alone is enough. */
function wantedText<T>(
  field: FilterField<T> & { kind: 'text' },
  { reader, value }: Restriction,
): string {
  const { collection } = field;
  const { text, at, startsAnyhow } = value;
  if (collection === undefined || text === '') return folded(field, text);
  if (text.startsWith(`${collection}/`) || startsAnyhow) return text;
  if (text.includes('/')) {
    return reader.fail(`a name of ${collection} has to stand here, as ${collection}/ID or ID`, at);
  }
  return `${collection}/${text}`;
}

function folded(field: { readonly folds?: true }, text: string): string {
  return field.folds === true ? text.toLowerCase() : text;
}

/** The text of a value without a star. */
function whole({ reader, value, name }: Restriction): string {
  if (!value.startsAnyhow && !value.endsAnyhow) return value.text;
  return reader.fail(`${name} takes no star here`, value.at);
}

function numberOf(restriction: Restriction): number {
  const text = whole(restriction);
  if (/^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text);
  return refuse(restriction, 'is a number, as 42 or 0.5', restriction.value.at);
}

const instant = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$/i;

/** RFC 3339, or a day in UTC. */
function timeOf(restriction: Restriction): number {
  const text = whole(restriction);
  const [, day = ''] = instant.exec(text) ?? [];
  const isDay = !Number.isNaN(Date.parse(day)) && dayOf(Date.parse(day)) === day;
  const ms = isDay ? Date.parse(text.toUpperCase()) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  return refuse(
    restriction,
    'is a time, as 2026-01-31T12:00:00Z, or a day, as 2026-01-31',
    restriction.value.at,
  );
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function refuse(
  { reader, name, comparator, atComparator }: Restriction,
  subject: string,
  at?: number,
): never {
  if (at !== undefined) return reader.fail(`${name} ${subject}`, at);
  return reader.fail(`${comparator} ${subject}`, atComparator);
}
