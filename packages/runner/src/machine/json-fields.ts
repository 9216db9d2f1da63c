/** Reads fields of JSON files that people write: each with a default, wrong types refused. Pure. */

export type ToolJsonObject = Readonly<Record<string, unknown>>;

/** Parses an object and refuses keys outside `known`; `source` names the file in errors. */
export function parseObject(
  text: string,
  source: string,
  known: readonly string[],
): ToolJsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${source}: no JSON text`, { cause });
  }
  return asObject(value, source, known);
}

export function asObject(value: unknown, source: string, known: readonly string[]): ToolJsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${source}: must be an object`);
  }
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new Error(`${source}: unknown key "${unknown}"; known are ${known.join(', ')}`);
  }
  return value as ToolJsonObject;
}

export function textAt(object: ToolJsonObject, key: string, otherwise: string): string {
  const value = object[key] ?? otherwise;
  if (typeof value !== 'string') throw new Error(`"${key}" must be a text`);
  return value;
}

export function numberAt(object: ToolJsonObject, key: string, otherwise: number): number {
  const value = object[key] ?? otherwise;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new Error(`"${key}" must be a whole number of at least 0`);
  }
  return value;
}

export function flagAt(object: ToolJsonObject, key: string, otherwise: boolean): boolean {
  const value = object[key] ?? otherwise;
  if (typeof value !== 'boolean') throw new Error(`"${key}" must be true or false`);
  return value;
}

export function listAt(object: ToolJsonObject, key: string): readonly unknown[] {
  const value = object[key] ?? [];
  if (!Array.isArray(value)) throw new Error(`"${key}" must be a list`);
  return value;
}
