/** Flags and arguments that several commands share. */
import { UsageError } from './failure.ts';
import type { OutputKind } from './output/show.ts';
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
    brief: 'File with server, tokenFile, caFile',
    placeholder: 'file',
  },
} as const;

/** `-o`. */
export const outputFlag = {
  output: {
    kind: 'enum',
    values: ['table', 'json'],
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

/** One text argument that must be given. */
export function idArgument(placeholder: string, brief: string) {
  return {
    kind: 'tuple',
    parameters: [{ parse: path, brief, placeholder }],
  } as const;
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
