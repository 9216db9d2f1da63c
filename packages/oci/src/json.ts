/** Reads JSON of an untrusted author: a field that is missing or of another type is `malformed`. */
import { OciError } from './failure.ts';

export type OciJsonObject = Readonly<Record<string, unknown>>;

/** The object in `bytes`; `name` names it in errors. */
export function parseJson(bytes: Uint8Array, name: string): OciJsonObject {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // The message of the parser repeats bytes of the registry.
    throw new OciError('malformed', `the ${name} is not JSON`);
  }
  return asObject(value, `the ${name}`);
}

export function asObject(value: unknown, name: string): OciJsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as OciJsonObject;
  }
  throw new OciError('malformed', `${name} is no object`);
}

/** The list at `key`; absent and null are empty. */
export function listAt(object: OciJsonObject, key: string, itemsMax: number): readonly unknown[] {
  const value = object[key] ?? [];
  if (!Array.isArray(value)) throw new OciError('malformed', `"${key}" is no list`);
  if (value.length > itemsMax) {
    throw new OciError('tooLarge', `"${key}" has ${value.length} items; at most ${itemsMax}`);
  }
  return value;
}

/** The texts at `key`; absent and null are empty. */
export function textsAt(object: OciJsonObject, key: string, itemsMax: number): readonly string[] {
  return listAt(object, key, itemsMax).map((item) => {
    if (typeof item === 'string') return item;
    throw new OciError('malformed', `"${key}" holds something that is no text`);
  });
}

/** The text at `key`; absent and null are empty. */
export function textAt(object: OciJsonObject, key: string): string {
  const value = object[key] ?? '';
  if (typeof value === 'string') return value;
  throw new OciError('malformed', `"${key}" is no text`);
}
