/** Flags and arguments that several commands share. */

import type { CliContext } from './command-io.ts';
import type { NamedCollection } from './commands/frame/names.ts';
import { UsageError } from './failure.ts';
import { type OutputKind, outputKinds } from './output/kinds.ts';
import type { ConnectionFlags } from './settings.ts';

const path = (text: string) => text;

/** Flags to reach the control plane. */
export const connectionFlags = {
  server: {
    kind: 'parsed',
    parse: path,
    optional: true,
    brief: 'Control plane, HOST:PORT',
    placeholder: 'host:port',
  },
  tokenFile: {
    kind: 'parsed',
    parse: path,
    optional: true,
    brief: 'File with the token',
    placeholder: 'file',
  },
  caFile: {
    kind: 'parsed',
    parse: path,
    optional: true,
    brief: 'File with the CA certificate (ca.pem)',
    placeholder: 'file',
  },
  config: {
    kind: 'parsed',
    parse: path,
    optional: true,
    brief: 'File with contexts, or with server, tokenFile, caFile',
    placeholder: 'file',
  },
  context: {
    kind: 'parsed',
    parse: path,
    optional: true,
    brief: 'Control plane by its name in that file',
    placeholder: 'name',
  },
} as const;

/** `-o`. */
export const outputFlag = {
  output: {
    kind: 'enum',
    values: outputKinds,
    default: 'table',
    brief: 'Form of the output',
  },
} as const;

/** `--request-id`. */
export const requestFlag = {
  requestId: {
    kind: 'parsed',
    parse: String,
    default: '',
    brief: 'Id under which the request may be repeated safely',
    placeholder: 'id',
  },
} as const;

export interface SharedFlags extends ConnectionFlags {
  readonly output: OutputKind;
}

/** A flag with one text, which may be left out. */
export function textFlag(brief: string, placeholder: string) {
  return { kind: 'parsed', parse: String, optional: true, brief, placeholder } as const;
}

/** `--filter` and `--sort` of a list. */
export const searchFlags = {
  filter: textFlag('Only what matches, as in the API', 'filter'),
  sort: textFlag('Fields to sort by, as state,create_time desc', 'fields'),
} as const;

export interface SearchFlags {
  readonly filter?: string;
  readonly sort?: string;
}

/** The API request of a list's flags. */
export function searchOf({ filter = '', sort = '' }: SearchFlags) {
  return { filter, orderBy: sort };
}

/** The collections whose names a shell proposes. */
const collections: Readonly<Record<string, NamedCollection>> = {
  host: 'hosts',
  rack: 'racks',
  pool: 'pools',
  template: 'templates',
  credential: 'credentials',
};

/** One argument with the id of a resource; those of `placeholder` are proposed by a shell. */
export function idPositional(placeholder: string, brief: string) {
  const collection = collections[placeholder];
  const proposed = collection === undefined ? {} : { proposeCompletions: proposer(collection) };
  return { parse: path, brief, placeholder, ...proposed } as const;
}

/** One text argument that must be given. */
export function idArgument(placeholder: string, brief: string) {
  return { kind: 'tuple', parameters: [idPositional(placeholder, brief)] } as const;
}

/** Asks the control plane for names; loaded only when a shell asks. */
export function proposer(collection: NamedCollection) {
  return async function propose(this: CliContext, partial: string): Promise<readonly string[]> {
    const { proposeNames } = await import('./commands/frame/names.ts');
    return proposeNames(this.io, collection, partial);
  };
}

/** "hosts/h1" from "h1" or "hosts/h1". */
export function resourceName(collection: string, id: string): string {
  return id.includes('/') ? id : `${collection}/${id}`;
}

/** Labels from "key=value" texts. Throws `UsageError`. */
export function parseLabels(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.map((text) => parsePair('--label', text)));
}

/** The parts of "name=value". Throws `UsageError`. */
export function parsePair(
  flag: string,
  text: string,
  shape = 'NAME=VALUE',
): readonly [string, string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new UsageError(`${flag} is "${text}"; it must be ${shape}`);
}

/** A whole number. Throws for anything else; Stricli prints it with the flag. */
export function parseWhole(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new SyntaxError(`"${text}" is not allowed; it must be a whole number, 0 to 999999999`);
}

/** Priorities of steps from "INTERFACE.STEP=NUMBER" texts. Throws `UsageError`. */
export function parsePriorities(flag: string, texts: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, step, priority] = /^([^=]+)=(\d{1,9})$/.exec(text) ?? [];
      if (step !== undefined) return [step, Number(priority)];
      const right = 'INTERFACE.STEP=NUMBER, the number 0 to 999999999';
      throw new UsageError(`${flag} is "${text}"; it must be ${right}`);
    }),
  );
}

/** A flag's change of a map: entries to set, and the paths of all that it names. */
export interface MapChange<T> {
  readonly set: Record<string, T>;
  readonly paths: readonly string[];
}

/**
 * Changes of the map at `path` from "KEY=VALUE" texts that set an entry, "KEY-" that remove one, or
 * "none" alone that removes all. Entries that no text names stay. Throws `UsageError`.
 */
export function parseMapChange<T>(
  flag: string,
  path: string,
  texts: readonly string[] | undefined,
  parse: (texts: readonly string[]) => Record<string, T>,
): MapChange<T> {
  if (texts === undefined) return { set: {}, paths: [] };
  if (texts.join() === 'none') return { set: {}, paths: [path] };
  const set = parse(texts.filter((text) => removedKey(text) === undefined));
  const removed = texts.flatMap((text) => removedKey(text) ?? []);
  const both = removed.find((key) => Object.hasOwn(set, key));
  if (both !== undefined) throw new UsageError(`${flag} both sets and removes ${both}`);
  const keys = [...Object.keys(set), ...removed];
  return { set, paths: keys.map((key) => `${path}.\`${key}\``) };
}

/** "site" of "site-"; undefined: the text removes nothing. */
export function removedKey(text: string): string | undefined {
  return /^([^=]+)-$/.exec(text)?.[1];
}

/** The change of labels at `path` that `--label` texts ask for. Throws `UsageError`. */
export function labelChange(
  texts: readonly string[] | undefined,
  path = 'labels',
): MapChange<string> {
  return parseMapChange('--label', path, texts, (pairs) =>
    Object.fromEntries(pairs.map((text) => parsePair('--label', text, labelShape))),
  );
}

const labelShape = 'NAME=VALUE to set a label, NAME- to remove one, or none to remove all';

/** `--label` of an update. */
export const labelChangeFlag = {
  label: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'NAME=VALUE sets a label, NAME- removes it, none removes all; may be repeated',
    placeholder: 'name=value',
  },
} as const;
