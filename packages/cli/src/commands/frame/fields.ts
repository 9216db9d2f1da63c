/**
 * Tables of a resource's fields: each is one entry, with its flag, the path of its value, and the
 * conversion of the value. Flags, values and update masks all follow from it.
 */

/** Stricli's type of a flag, as far as its values determine it. */
type FlagOf =
  | { readonly kind: 'boolean' }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  | { readonly kind: 'parsed'; readonly parse: (text: string) => unknown };

/** One field. `Given`: the type of its flag's value. */
export interface FlagField<Flag extends FlagOf = FlagOf> {
  readonly flag: Flag;
  /** Below the resource's spec, by names in JSON: "bmc.cipherSuite". */
  readonly at: string;
  /** The conversion of the flag's value; unset: none. */
  readonly as?: (given: never) => unknown;
  /** An empty text takes the value away; unset: it says nothing. */
  readonly clears?: boolean;
}

type FlagValue<Flag> = Flag extends { readonly kind: 'boolean' }
  ? boolean
  : Flag extends { readonly kind: 'enum'; readonly values: readonly (infer Word)[] }
    ? Word
    : Flag extends { readonly variadic: true; readonly parse: (text: string) => infer Value }
      ? readonly Value[]
      : Flag extends { readonly parse: (text: string) => infer Value }
        ? Value
        : never;

/** An entry, whose conversion takes the value of its flag. */
export function field<const Flag extends FlagOf>(
  flag: Flag,
  at: string,
  as?: (given: FlagValue<Flag>) => unknown,
): FlagField<Flag> {
  return as === undefined ? { flag, at } : { flag, at, as };
}

type Table = Readonly<Record<string, FlagField>>;

/** The flags of a table, as a command takes them. */
export type FlagsOf<T extends Table> = { readonly [K in keyof T]: T[K]['flag'] };

/** The values of these flags; any may be left out. */
export type ValuesOf<T extends Table> = { readonly [K in keyof T]?: FlagValue<T[K]['flag']> };

/** The flags of a table. */
export function flagsOf<T extends Table>(table: T): FlagsOf<T> {
  const entries = Object.entries(table).map(([name, { flag }]) => [name, flag]);
  return Object.fromEntries(entries) as FlagsOf<T>;
}

/** "other-name" of "otherName" */
export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (one) => `-${one.toLowerCase()}`);
}

/** "--name, --other-name or --last", as people give the flags. */
export function namesOf(flags: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(flags).map((name) => `--${kebab(name)}`);
  const last = names.pop() ?? '';
  return names.length === 0 ? last : `${names.join(', ')} or ${last}`;
}

/** The fields of a spec that the flags set: its value, and the paths of an update. */
export interface GivenFields {
  readonly spec: Record<string, unknown>;
  readonly paths: string[];
}

/** The fields that the flags set, in the order of the table. */
export function givenBy<T extends Table>(table: T, flags: ValuesOf<T>): GivenFields {
  const spec: Record<string, unknown> = {};
  const paths: string[] = [];
  for (const [name, { at, as, clears }] of Object.entries(table)) {
    const given = flags[name];
    if (given === undefined || (given === '' && clears !== true)) continue;
    setField({ spec, paths }, at, as === undefined ? given : as(given as never));
  }
  return { spec, paths };
}

/** Adds a field to the update; undefined: the update clears the field. */
export function setField({ spec, paths }: GivenFields, at: string, value: unknown): void {
  set(spec, at.split('.'), value);
  paths.push(pathOf(at));
}

/** The path of an update: "spec.bmc.cipher_suite" of "bmc.cipherSuite". */
export function pathOf(at: string): string {
  return `spec.${snake(at)}`;
}

/** "bmc.cipher_suite" of "bmc.cipherSuite" */
function snake(path: string): string {
  return path.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function set(target: Record<string, unknown>, [key = '', ...rest]: string[], value: unknown): void {
  if (rest.length === 0) {
    target[key] = value;
    return;
  }
  const below = (target[key] ??= {}) as Record<string, unknown>;
  set(below, rest, value);
}
