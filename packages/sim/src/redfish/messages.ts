/** One request and one answer of a Redfish service, and how refusals are worded (DSP0266 §8.6). */

export interface RedfishCall {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RedfishAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as it is. */
  readonly body: string;
  /** The connection is dropped instead. */
  readonly isDropped?: true;
}

/** A resource, or the body of an answer. */
export type Json = null | boolean | number | string | readonly Json[] | RedfishJsonObject;
export interface RedfishJsonObject {
  readonly [key: string]: Json | undefined;
}

/** Without query and closing slashes: Redfish clients are free in both. */
export function plainPath(target: string): string {
  return target.replace(/[?#].*$/, '').replace(/\/+$/, '');
}

/** The object in a body; undefined: there is none. */
export function parseObject(text: string): RedfishJsonObject | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): RedfishJsonObject | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as RedfishJsonObject) : undefined;
}

const always = { 'odata-version': '4.0', 'cache-control': 'no-cache' };

export function json(status: number, body: RedfishJsonObject, headers = {}): RedfishAnswer {
  return {
    status,
    headers: { ...always, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
}

export function noContent(): RedfishAnswer {
  return { status: 204, headers: always, body: '' };
}

/** `key` is a message of DMTF's Base registry; `text` is what a person reads. */
export function refusal(
  status: number,
  key: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): RedfishAnswer {
  const errorBody = {
    '@odata.type': '#Message.v1_1_2.Message',
    MessageId: `Base.1.8.${key}`,
    Message: text,
    MessageSeverity: 'Critical',
    Resolution: 'None.',
  };
  const error = {
    code: `Base.1.8.${key}`,
    message: text,
    '@Message.ExtendedInfo': [errorBody],
  };
  return json(status, { error }, headers);
}
