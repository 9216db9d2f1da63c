/**
 * Reads a BMC's answers: no field is assumed to be there or to have its type, and texts and lists
 * are bounded.
 */
import { parsedJson } from '@rackwright/platform';

export interface JsonObject {
  readonly [key: string]: unknown;
}

const textCharactersMax = 256;
const pathCharactersMax = 512;

/** Undefined: not JSON, or no object. */
export function parseObject(body: Uint8Array): JsonObject | undefined {
  const value = parsedJson(new TextDecoder().decode(body));
  return isObject(value) ? value : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object at `key`; an empty one when there is none. */
export function objectAt(from: JsonObject, key: string): JsonObject {
  const value = from[key];
  return isObject(value) ? value : {};
}

/** Without control characters and outer spaces; undefined when nothing is left. */
export function textAt(from: JsonObject, key: string): string | undefined {
  const value = from[key];
  if (typeof value !== 'string') return undefined;
  const text = value.replaceAll(/\p{Cc}/gu, '').trim();
  return text === '' ? undefined : text.slice(0, textCharactersMax);
}

export function numberAt(from: JsonObject, key: string): number | undefined {
  const value = from[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** The texts of a list; undefined when there is no list. */
export function textsAt(from: JsonObject, key: string): readonly string[] | undefined {
  const value = from[key];
  if (!Array.isArray(value)) return undefined;
  return value.filter((one) => typeof one === 'string').map((one) => one.slice(0, 64));
}

export function objectsAt(from: JsonObject, key: string): readonly JsonObject[] {
  const value = from[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The path that a reference points to. References leave their BMC never: only paths count. */
export function pathOf(reference: JsonObject, key = '@odata.id'): string | undefined {
  const value = reference[key];
  if (typeof value !== 'string' || value.length > pathCharactersMax) return undefined;
  return /^\/(?!\/)[!-~]*$/.test(value) ? value : undefined;
}

/** The paths of a list of references. */
export function pathsAt(from: JsonObject, key: string): readonly string[] {
  return objectsAt(from, key).flatMap((reference) => pathOf(reference) ?? []);
}
