/** The functions of expressions, as a table. */
import { isList, jsonOf, type Value, type ValueType } from './values.ts';

export interface TemplateFunction {
  /** The types of each argument. */
  readonly parameters: readonly (readonly ValueType[])[];
  /** Undefined: that of the first argument, which all the others must share. */
  readonly result: ValueType | undefined;
  /** Called also with an unknown value; every other function returns that unchanged. */
  readonly takesUnknown: boolean;
  readonly apply: (values: readonly Value[]) => Value;
}

const single: readonly ValueType[] = ['text', 'integer', 'boolean', 'duration'];
const lists: readonly ValueType[] = ['texts', 'integers', 'records'];

export const functions: Readonly<Record<string, TemplateFunction>> = {
  /** For a POSIX shell: any text as one word. */
  quote: {
    parameters: [['text']],
    result: 'text',
    takesUnknown: false,
    apply: ([text]) => `'${asText(text).replaceAll("'", `'\\''`)}'`,
  },
  json: {
    parameters: [[...single, ...lists, 'record']],
    result: 'text',
    takesUnknown: true,
    apply: ([value]) => jsonOf(value),
  },
  lower: {
    parameters: [['text']],
    result: 'text',
    takesUnknown: false,
    apply: ([text]) => asText(text).toLowerCase(),
  },
  length: {
    parameters: [lists],
    result: 'integer',
    takesUnknown: false,
    apply: ([list]) => BigInt(isList(list) ? list.length : 0),
  },
  join: {
    parameters: [['texts'], ['text']],
    result: 'text',
    takesUnknown: false,
    apply: ([list, between]) => (isList(list) ? list.map(asText) : []).join(asText(between)),
  },
  default: {
    parameters: [single, single],
    result: undefined,
    takesUnknown: true,
    apply: ([value, otherwise]) => value ?? otherwise,
  },
  isSet: {
    parameters: [single],
    result: 'boolean',
    takesUnknown: true,
    apply: ([value]) => value !== undefined,
  },
};

function asText(value: Value): string {
  return typeof value === 'string' ? value : '';
}
