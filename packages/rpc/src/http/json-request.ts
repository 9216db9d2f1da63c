/**
 * A request in JSON (the ProtoJSON format) → its message, within the limits that its method has for
 * binary ones. An unknown field is refused: it is a misspelling of a person who writes JSON by
 * hand.
 */
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
} from '@bufbuild/protobuf';
import { ApiFailure, type FieldViolation, invalidArgument } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { surveyJson } from '../bounds/json-survey.ts';
import type { MessageLimits } from '../bounds/method-limits.ts';
import { tooMuch } from '../wire/codec.ts';

/** The message in `bytes`. Throws `resourceExhausted` for too much and `invalidArgument`. */
export function readJson<D extends DescMessage>(
  schema: D,
  bytes: Uint8Array,
  limits: MessageLimits,
): MessageShape<D> {
  const found = surveyJson(bytes, limits);
  if (typeof found !== 'number') throw tooMuch(schema.typeName, found);
  const value = parse(schema, bytes);
  const unknown = unknownFields(schema, value);
  if (unknown.length > 0) throw invalidArgument(unknown);
  try {
    return fromJson(schema, value, { ignoreUnknownFields: false });
  } catch (error) {
    throw noMessage(schema, error);
  }
}

function parse({ typeName }: DescMessage, bytes: Uint8Array): JsonValue {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as JsonValue;
  } catch {
    // The parser's message repeats the received text, which may be a secret.
    return refuse(`The body is no JSON; send a ${typeName} as an object, {} if it is empty.`);
  }
}

/** Without a cause: values that are repeated in it may be secrets, and causes are logged. */
function noMessage({ typeName }: DescMessage, error: unknown): ApiFailure {
  return refusal(`The JSON is no ${typeName}: ${errorText(error)}.`);
}

function refusal(message: string): ApiFailure {
  const error = { message, reason: 'MALFORMED_MESSAGE', violations: [] };
  return new ApiFailure({ kind: 'invalidArgument', ...error });
}

function refuse(message: string): never {
  throw refusal(message);
}

/** Every name in the JSON that its message has no field for, by its path in proto names. */
function unknownFields(schema: DescMessage, value: JsonValue, at = ''): FieldViolation[] {
  if (!isObject(value) || schema.typeName.startsWith('google.protobuf.')) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const field = schema.fields.find(({ name, jsonName }) => key === jsonName || key === name);
    const path = at === '' ? (field?.name ?? key) : `${at}.${field?.name ?? key}`;
    if (field !== undefined) return unknownBelow(field, inner, path);
    const known = schema.fields.map(({ name }) => name).join(', ');
    return [{ field: path, description: `is unknown; ${schema.name} has ${known || 'no fields'}` }];
  });
}

function unknownBelow(field: DescField, value: JsonValue, path: string): FieldViolation[] {
  const { message } = field;
  if (message === undefined) return [];
  if (field.fieldKind === 'list' && Array.isArray(value)) {
    return value.flatMap((each, index) => unknownFields(message, each, `${path}[${index}]`));
  }
  if (field.fieldKind === 'map' && isObject(value)) {
    return Object.entries(value).flatMap(([key, each]) =>
      unknownFields(message, each, `${path}.${key}`),
    );
  }
  return unknownFields(message, value, path);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
