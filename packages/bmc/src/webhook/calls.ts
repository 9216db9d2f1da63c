/** The requests to a device that switches a socket, and the state in its answer. Pure. */
import { parsedJson } from '@rackwright/platform';
import type { PowerState } from '../driver.ts';

/** The requests of one socket. */
export interface PowerCalls {
  /** Path and query, starting with "/". */
  readonly onPath: string;
  readonly offPath: string;
  readonly statePath: string;
  /** The method of the requests on and off; empty means POST. */
  readonly method: string;
  /** JSON; empty: none. */
  readonly onBody: string;
  readonly offBody: string;
  /** The status that says that one was taken; undefined: 200–299. */
  readonly expectedStatus?: number | undefined;
  /** "relays.0.on"; empty: the whole answer. */
  readonly stateField: string;
  /** Empty: the usual words. */
  readonly onValues: readonly string[];
  readonly offValues: readonly string[];
  /** The header that the secret goes into; empty: Basic. */
  readonly secretHeader: string;
  readonly plainHttp: boolean;
}

const usualWords = { on: ['true', 'on', '1'], off: ['false', 'off', '0'] } as const;

export type ReadState =
  | { readonly kind: 'state'; readonly power: PowerState }
  | { readonly kind: 'none'; readonly why: string };

/** The state in an answer; a value that the configuration names neither on nor off is no state. */
export function stateIn(body: Uint8Array, calls: PowerCalls): ReadState {
  const found = textIn(Buffer.from(body).toString('utf8'), calls.stateField);
  if (found === undefined) {
    return { kind: 'none', why: `its answer has no ${calls.stateField || 'text'}` };
  }
  const value = found.trim().toLowerCase();
  const isOneOf = (given: readonly string[], usual: readonly string[]) =>
    (given.length === 0 ? usual : given).some((word) => word.toLowerCase() === value);
  const isOn = isOneOf(calls.onValues, usualWords.on);
  const isOff = isOneOf(calls.offValues, usualWords.off);
  if (isOn !== isOff) return { kind: 'state', power: isOn ? 'on' : 'off' };
  // Not verbatim: an answer may repeat the request.
  return { kind: 'none', why: `its answer of ${value.length} characters is neither on nor off` };
}

function textIn(text: string, field: string): string | undefined {
  if (field === '') return text;
  let at: unknown = parsedJson(text);
  for (const name of field.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return typeof at === 'string' || typeof at === 'number' || typeof at === 'boolean'
    ? String(at)
    : undefined;
}
