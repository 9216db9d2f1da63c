/**
 * Resources as plain values, as they are in files: only set fields, names as in JSON, enum values
 * as people write them ("metadata-only").
 */
import type { DescEnum, DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';

/** A value of a file. */
export type Plain =
  | string
  | number
  | boolean
  | readonly Plain[]
  | { readonly [name: string]: Plain };

export type PlainObject = Readonly<Record<string, Plain>>;

/**
 * The named fields of a message, as far as they are set. Empty labels or an empty spec count as
 * unset: the control plane may add an empty one where a file has nothing.
 */
export function plainOf<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  fields: readonly string[],
): PlainObject {
  const found = Object.entries(fieldsOf(reflect(schema, message), fields));
  const isEmpty = (value: Plain) => typeof value === 'object' && Object.keys(value).length === 0;
  return Object.fromEntries(found.filter(([, value]) => !isEmpty(value)));
}

/** The message of a plain value. Throws for values that do not fit. */
export function messageFrom<D extends DescMessage>(schema: D, plain: PlainObject): MessageShape<D> {
  return fromJson(schema, jsonOf(schema, plain) as JsonValue);
}

/** With enum values as JSON has them. */
function jsonOf(desc: DescMessage, plain: PlainObject): PlainObject {
  const found: Record<string, Plain> = {};
  for (const [name, value] of Object.entries(plain)) {
    const field = desc.fields.find(({ jsonName }) => jsonName === name);
    found[name] = field === undefined ? value : memberJson(field, value);
  }
  return found;
}

function memberJson(field: DescField, value: Plain): Plain {
  if (Array.isArray(value)) return value.map((each: Plain) => memberJson(field, each));
  if (field.enum !== undefined) {
    const { enum: desc } = field;
    return desc.values.find(({ localName }) => enumWord(localName) === value)?.name ?? value;
  }
  if (typeof value !== 'object') return value;
  if (field.fieldKind === 'map') {
    const { message } = field;
    const entries = Object.entries(value).map(
      ([key, each]) =>
        [key, message === undefined ? each : jsonOf(message, each as PlainObject)] as const,
    );
    return Object.fromEntries(entries);
  }
  return field.message === undefined ? value : jsonOf(field.message, value as PlainObject);
}

/** The name of an enum value in files. */
export function enumText(desc: DescEnum, value: number): string {
  const found = desc.values.find(({ number }) => number === value);
  return found === undefined ? String(value) : enumWord(found.localName);
}

export function enumWord(localName: string): string {
  return localName.toLowerCase().replaceAll('_', '-');
}

/** Messages that are one value in JSON. */
function isPlainMessage({ typeName }: DescMessage): boolean {
  return typeName === 'google.protobuf.Timestamp' || typeName === 'google.protobuf.Duration';
}

function fieldsOf(message: ReflectMessage, only?: readonly string[]): PlainObject {
  const found: Record<string, Plain> = {};
  for (const field of message.desc.fields) {
    if (only?.includes(field.jsonName) === false || !message.isSet(field)) continue;
    found[field.jsonName] = valueOf(message, field);
  }
  return found;
}

function valueOf(message: ReflectMessage, field: DescField): Plain {
  switch (field.fieldKind) {
    case 'message':
      return memberOf(field.message, undefined, message.get(field));
    case 'list':
      return [...message.get(field)].map((each) => memberOf(field.message, field.enum, each));
    case 'map': {
      const entries = [...message.get(field)].map(
        ([key, value]) => [String(key), memberOf(field.message, field.enum, value)] as const,
      );
      return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
    }
    default:
      return memberOf(undefined, field.enum, message.get(field));
  }
}

/** A timestamp, a duration or a mask is a text in JSON. */
function textOfJson(json: unknown): string {
  return typeof json === 'string' ? json : JSON.stringify(json);
}

function memberOf(
  message: DescMessage | undefined,
  desc: DescEnum | undefined,
  value: unknown,
): Plain {
  if (message !== undefined) {
    const inner = value as ReflectMessage;
    return isPlainMessage(message)
      ? textOfJson(toJson(message, inner.message as never))
      : fieldsOf(inner);
  }
  if (desc !== undefined) return enumText(desc, Number(value));
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value === 'bigint')
    return Number.isSafeInteger(Number(value)) ? Number(value) : `${value}`;
  return value as Plain;
}
