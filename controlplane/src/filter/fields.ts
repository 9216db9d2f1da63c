/** Fields for filters and orders of lists: a table for each kind of resource. Pure. */
import type { DescEnum } from '@bufbuild/protobuf';
import { enumWord } from '@rackwright/messages';

/** How the values of a field are compared. */
type Kind<T> =
  | {
      readonly kind: 'text';
      readonly of: (item: T) => string;
      /** The value is the name of a resource of this collection; its id alone is enough. */
      readonly collection?: string;
      /** Upper and lower case are equal. */
      readonly folds?: true;
    }
  | {
      readonly kind: 'texts';
      readonly of: (item: T) => readonly string[];
      readonly folds?: true;
    }
  | { readonly kind: 'choice'; readonly of: (item: T) => number; readonly choices: DescEnum }
  | { readonly kind: 'flag'; readonly of: (item: T) => boolean | undefined }
  | { readonly kind: 'number'; readonly of: (item: T) => number | undefined }
  /** Milliseconds since 1970. */
  | { readonly kind: 'time'; readonly of: (item: T) => number | undefined }
  | { readonly kind: 'map'; readonly of: (item: T) => Readonly<Record<string, string>> };

/** A field; `path` is its path in the message, which is another name for it. */
export type FilterField<T> = Kind<T> & { readonly path?: string };

/** By the short name that people use. */
export type FilterFields<T> = Readonly<Record<string, FilterField<T>>>;

/** A field as it was named: an entry of a map is a text field of its own. */
export interface NamedField<T> {
  readonly name: string;
  readonly field: FilterField<T>;
}

/** The field of this name or path; undefined: there is none. */
export function fieldNamed<T>(fields: FilterFields<T>, name: string): NamedField<T> | undefined {
  for (const [short, field] of Object.entries(fields)) {
    if (name === short || name === field.path) return { name: short, field };
    if (field.kind !== 'map') continue;
    const head = [short, field.path].find((each) => each && name.startsWith(`${each}.`));
    const key = head === undefined ? '' : name.slice(head.length + 1);
    if (key === '') continue;
    const of = (item: T) => entryOf(field.of(item), key);
    return { name: `${short}.${key}`, field: { kind: 'text', of } };
  }
  return undefined;
}

/** "" where the map itself has no such entry. */
function entryOf(map: Readonly<Record<string, string>>, key: string): string {
  return Object.hasOwn(map, key) ? (map[key] ?? '') : '';
}

/** "labels.KEY, name, state": what a person may name. */
export function fieldNames<T>(fields: FilterFields<T>): string {
  const names = Object.entries(fields).map(([name, { kind }]) =>
    kind === 'map' ? `${name}.KEY` : name,
  );
  return names.toSorted().join(', ');
}

/** The number of a choice by its short or full name, in either case; undefined: there is none. */
export function choiceNamed(choices: DescEnum, text: string): number | undefined {
  const name = text.toUpperCase().replaceAll('-', '_');
  const isIt = (each: DescEnum['values'][number]) => each.localName === name || each.name === name;
  return choices.values.find((each) => each.number !== 0 && isIt(each))?.number;
}

/** "available, new": every choice that there is. */
export function choiceNames(choices: DescEnum): string {
  return choices.values.flatMap(({ number }) => enumWord(choices, number) ?? []).join(', ');
}

/** The values of a field as texts for a filter; none where the field is unset. */
export function textsOf<T>(field: FilterField<T>, item: T): readonly string[] {
  switch (field.kind) {
    case 'text':
      return [field.of(item)].filter((text) => text !== '');
    case 'texts':
      return [...new Set(field.of(item))];
    case 'choice':
      return [enumWord(field.choices, field.of(item)) ?? []].flat();
    case 'flag':
    case 'number':
      return [field.of(item)].flatMap((value) => (value === undefined ? [] : String(value)));
    case 'time':
      return [field.of(item)].flatMap((ms) => (ms === undefined ? [] : timeText(ms)));
    case 'map':
      return Object.keys(field.of(item));
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
