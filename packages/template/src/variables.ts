/** Variables: their declaration, and their values when a template is rendered. */
import { ArgumentType } from '@rackwright/messages';
import { secondsOf } from './duration.ts';
import type { KnownValue, Lookup } from './expression/evaluate.ts';
import type { Surroundings } from './expression/references.ts';
import type { Value, ValueType } from './expression/values.ts';
import {
  choice,
  entriesOf,
  type Field,
  type Fields,
  fieldsOf,
  interpolated,
  itemsOf,
  type ParseContext,
  plainText,
  upTo,
} from './fields.ts';
import { choicesMax, descriptionCharsMax, variableCharsMax, variablesMax } from './limits.ts';
import { didYouMeanText, type Problems, quoted, suggestionText } from './problems.ts';
import { referencesOf, renderText, roomForAll, type TextCheck } from './text.ts';
import type { ParsedVariable } from './types.ts';

const types = {
  string: ArgumentType.STRING,
  integer: ArgumentType.INTEGER,
  boolean: ArgumentType.BOOLEAN,
  duration: ArgumentType.DURATION,
  choice: ArgumentType.CHOICE,
} as const;

type TypeName = keyof typeof types;

const typeWords = Object.keys(types) as TypeName[];

const valueTypes: Readonly<Record<TypeName, ValueType>> = {
  string: 'text',
  integer: 'integer',
  boolean: 'boolean',
  duration: 'duration',
  choice: 'text',
};

const variableName = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
/** What `isVariableName` asks for, in words. */
export const variableNameForm = '1 to 63 letters, digits, "_" and "-", beginning with a letter';

/** Whether a template can declare a variable of this name, and a workflow give it a value. */
export function isVariableName(text: string): boolean {
  return variableName.test(text);
}

interface DeclaredVariable {
  readonly name: string;
  readonly type: TypeName;
  readonly fields: Fields;
  readonly values: readonly string[];
  readonly at: number;
}

/** The template's declarations, and the types by which expressions know them. */
export function readVariables(
  reading: ParseContext,
  field: Field | undefined,
): { readonly variables: readonly ParsedVariable[]; readonly types: Surroundings['variables'] } {
  const entries = field === undefined ? [] : entriesOf(reading, field);
  const { problems } = reading;
  if (entries.length > variablesMax && field !== undefined) {
    const message = `has ${entries.length} variables; at most ${variablesMax} are taken`;
    problems.add(field.at, field.path, message);
    return { variables: [], types: new Map() };
  }
  const declared = entries.map((entry) => declaration(reading, entry));
  const known = new Map(declared.map(({ name, type }) => [name, valueTypes[type]] as const));
  const around: Surroundings = { variables: known, steps: undefined };
  const variables = declared.map((each) => withDefault(reading, each, around));
  refuseCycles(variables, problems);
  return { variables, types: known };
}

function declaration(
  reading: ParseContext,
  entry: Field & { readonly name: string },
): DeclaredVariable {
  const { problems } = reading;
  const { name, at } = entry;
  if (!isVariableName(name)) {
    const message = `${quoted(name)} is no name for a variable; it has ${variableNameForm}`;
    problems.add(at, entry.path, message);
  }
  const fields = fieldsOf(reading, entry, ['type', 'default', 'description', 'values']);
  const typeField = fields.get('type');
  const type = typeField === undefined ? 'string' : choice(reading, typeField, typeWords);
  const listed = fields.get('values');
  if (type === 'choice' && listed === undefined) {
    problems.add(at, entry.path, 'is a choice; values must list what it may be');
  }
  if (type !== 'choice' && listed !== undefined) {
    problems.add(listed.at, listed.path, 'goes with the type choice only');
  }
  const values = listed === undefined ? [] : choices(reading, listed);
  return { name, type: type ?? 'string', fields, values, at };
}

function choices(reading: ParseContext, field: Field): readonly string[] {
  const items = itemsOf(reading, field);
  const { problems } = reading;
  if (items.length > choicesMax || (items.length === 0 && field.node.kind === 'list')) {
    const message = `has ${items.length} values; 1 to ${choicesMax} are taken`;
    problems.add(field.at, field.path, message);
    return [];
  }
  const values: string[] = [];
  for (const item of items) {
    const value = plainText(reading, item, upTo(variableCharsMax));
    if (value === undefined) continue;
    if (values.includes(value)) problems.add(item.at, item.path, `${quoted(value)} is there twice`);
    values.push(value);
  }
  return values;
}

function withDefault(
  reading: ParseContext,
  { name, type, fields, values, at }: DeclaredVariable,
  around: Surroundings,
): ParsedVariable {
  const described = fields.get('description');
  const description =
    described === undefined ? '' : plainText(reading, described, upTo(descriptionCharsMax));
  const given = fields.get('default');
  const lenient = type === 'integer' || type === 'boolean';
  const check = valueCheck(types[type], values);
  const text =
    given === undefined ? undefined : interpolated(reading, given, around, check, { lenient });
  return { name, type: types[type], description: description ?? '', default: text, values, at };
}

/** Whether a text is a value of such a variable. */
export function valueCheck(type: ArgumentType, values: readonly string[]): TextCheck {
  switch (type) {
    case ArgumentType.INTEGER:
      return (text) => (/^-?\d{1,15}$/.test(text) ? undefined : 'must be a whole number');
    case ArgumentType.BOOLEAN:
      return (text) => (/^(true|false)$/.test(text) ? undefined : 'must be true or false');
    case ArgumentType.DURATION:
      return (text) =>
        secondsOf(text) === undefined ? 'must be a time as "90s", "5m" or "2h"' : undefined;
    case ArgumentType.CHOICE:
      return (text) =>
        values.includes(text)
          ? undefined
          : `must be one of ${values.join(', ')}${didYouMeanText(text, values)}`;
    default:
      return upTo(variableCharsMax);
  }
}

/** A default that needs itself never resolves. */
function refuseCycles(variables: readonly ParsedVariable[], problems: Problems): void {
  const uses = new Map(variables.map((each) => [each.name, usedBy(each)] as const));
  for (const cycle of cyclesOf(uses)) {
    const first = variables.find(({ name }) => name === cycle[0]);
    if (first?.default === undefined) continue;
    const { at, path } = first.default;
    problems.add(at, path, `the default uses itself: ${[...cycle, cycle[0]].join(' → ')}`);
  }
}

function usedBy({ default: text }: ParsedVariable): readonly string[] {
  if (text === undefined) return [];
  return referencesOf(text)
    .filter(([root]) => root === 'vars')
    .map(([, name]) => String(name));
}

/** Every cycle once, beginning with the variable that is declared first. */
export function cyclesOf(uses: ReadonlyMap<string, readonly string[]>): readonly string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (name: string, path: readonly string[]): void => {
    const start = path.indexOf(name);
    if (start >= 0) {
      cycles.push(path.slice(start));
      return;
    }
    if (done.has(name)) return;
    for (const next of uses.get(name) ?? []) visit(next, [...path, name]);
    done.add(name);
  };
  for (const name of uses.keys()) visit(name, []);
  return cycles;
}

/** The values of all variables; problems when one is missing, unknown or of the wrong type. */
export function variableValues(
  variables: readonly ParsedVariable[],
  given: Readonly<Record<string, string>>,
  around: Lookup,
  problems: Problems,
): (name: string) => KnownValue {
  const names = variables.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const message = `the template has no variable ${quoted(name)}${suggestionText(name, names)}`;
    problems.add(0, `variables.${name}`, message);
  }
  const values = new Map<string, KnownValue>();
  const failed = new Set<string>();
  const valueOf = (name: string): KnownValue => {
    const made = values.get(name);
    if (made !== undefined) return made;
    const variable = variables.find((each) => each.name === name);
    const used = variable === undefined ? [] : usedBy(variable);
    for (const each of used) valueOf(each);
    // The problem of another variable has been reported at its place.
    const isHopeless = !Object.hasOwn(given, name) && used.some((each) => failed.has(each));
    const text =
      variable === undefined || isHopeless
        ? undefined
        : textOfVariable(variable, given, lookup, problems);
    if (text === undefined) failed.add(name);
    const known = { value: text === undefined ? undefined : typed(text, variable?.type) };
    values.set(name, known);
    return known;
  };
  const lookup: Lookup = (path) => (path[0] === 'vars' ? valueOf(String(path[1])) : around(path));
  for (const { name } of variables) valueOf(name);
  return valueOf;
}

function textOfVariable(
  { name, type, values, default: text, at }: ParsedVariable,
  given: Readonly<Record<string, string>>,
  lookup: Lookup,
  problems: Problems,
): string | undefined {
  const path = `variables.${name}`;
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  if (value === undefined) {
    if (text !== undefined) return renderText(text, { lookup, problems, room: roomForAll() });
    problems.add(at, path, `the variable ${quoted(name)} is not set; give it a value`);
    return undefined;
  }
  const problem = valueCheck(type, values)(value);
  if (problem === undefined) return value;
  problems.add(at, path, `${quoted(value)} is given: the variable ${problem}`);
  return undefined;
}

function typed(text: string, type: ArgumentType | undefined): Value {
  switch (type) {
    case ArgumentType.INTEGER:
      return BigInt(text);
    case ArgumentType.BOOLEAN:
      return text === 'true';
    case ArgumentType.DURATION:
      return { seconds: BigInt(secondsOf(text) ?? 0), text };
    default:
      return text;
  }
}
