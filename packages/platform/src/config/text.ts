/** From the text of a configuration file to a frozen value. */
import { parse } from 'yaml';
import { ConfigError, type ConfigReader, readConfiguration } from '../config-reader.ts';
import { errorText } from '../error-text.ts';

/** What `read` makes of YAML or JSON, frozen through and through. Throws `ConfigError`. */
export function readConfigText<T>(text: string, read: (reader: ConfigReader) => T): T {
  return deepFreeze(readConfiguration(valueOf(text), read));
}

/** For a key of the result that is there only with a value. */
export function optional<K extends string, T>(
  key: K,
  value: T | undefined,
): { readonly [P in K]?: T } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: T });
}

function valueOf(text: string): unknown {
  try {
    return parse(text) ?? undefined;
  } catch (cause) {
    const text = `the configuration is neither YAML nor JSON: ${errorText(cause)}`;
    throw new ConfigError({ key: '', text }, { cause });
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
