/**
 * The file with the contexts: control planes by name, one of them in use.
 *
 *     current: berlin
 *     contexts:
 *       berlin: {server: "cp.berlin:7440", tokenFile: /home/me/token, caFile: /home/me/ca.pem}
 *       paris:
 *         server: cp.paris:7440
 *         caFile: /home/me/paris.pem
 *         login: {issuer: https://idp.example, clientId: rackwright}
 *
 * `server`, `tokenFile` and `caFile` beside them hold where no context is in use.
 *
 * Invariant: what is written keeps the comments and the order of what was there, is whole or not at
 * all, and is readable by its owner alone.
 */
import { ConfigReader, errorText } from '@rackwright/platform';
import { isMap, parse, parseDocument } from 'yaml';
import type { CommandIo } from './command-io.ts';
import { UsageError } from './failure.ts';

/** The sign-in at an identity provider. */
export interface LoginSettings {
  /** "https://idp.example", as its tokens have it. */
  readonly issuer: string;
  readonly clientId: string;
  /** Beside openid; default: "openid profile email offline_access". */
  readonly scope: string;
  /** PEM of the authority that signed its certificate, beside the authorities of this machine. */
  readonly caFile?: string;
  /** Which of its tokens the control plane is shown. */
  readonly use: 'id' | 'access';
}

/** The settings of a context, or of the file beside its contexts. */
export interface ContextSettings {
  readonly server?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly login?: LoginSettings;
}

/** The whole file. */
export interface ConfigFile {
  readonly current?: string;
  readonly contexts: Readonly<Record<string, ContextSettings>>;
  readonly plain: ContextSettings;
}

export const defaultScope = 'openid profile email offline_access';
const configVariable = 'RACKWRIGHT_CONFIG';
/** It also names a file. */
const contextName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const contextsMax = 256;

/** The path of the file, and whether it was named or is the usual one. */
export function configPath(
  io: CommandIo,
  flags: { readonly config?: string },
): { readonly path: string; readonly isNamed: boolean } {
  const named = flags.config ?? io.environment[configVariable];
  return { path: named ?? `${configFolder(io)}/config.yaml`, isNamed: named !== undefined };
}

/** "~/.config/rackwright" */
export function configFolder({ environment, homeFolder }: CommandIo): string {
  return `${environment['XDG_CONFIG_HOME'] ?? `${homeFolder}/.config`}/rackwright`;
}

/**
 * Reads the file; an empty one where it is not there, and is not named or `mayLack`. Throws
 * `UsageError`.
 */
export async function readConfig(
  io: CommandIo,
  flags: { readonly config?: string },
  lack?: 'mayLack',
): Promise<ConfigFile> {
  const { path, isNamed } = configPath(io, flags);
  const text = await textAt(io, path);
  if (text === undefined) {
    if (!isNamed || lack === 'mayLack') return { contexts: {}, plain: {} };
    throw new UsageError(`the configuration file ${path} does not exist`);
  }
  try {
    const value: unknown = parse(text) ?? undefined;
    const reader = new ConfigReader(value);
    const current = reader.optionalText('current');
    const contexts = reader.optionalSection('contexts', (section) =>
      readContexts(section, namesIn(value)),
    );
    const plain = readContext(reader);
    reader.end();
    return { ...(current === undefined ? {} : { current }), contexts: contexts ?? {}, plain };
  } catch (cause) {
    const text = errorText(cause);
    throw new UsageError(`${path}: ${text}`, { cause });
  }
}

function namesIn(value: unknown): string[] {
  const contexts: unknown = value instanceof Object && 'contexts' in value ? value.contexts : {};
  return Object.keys(contexts ?? {});
}

async function textAt(io: CommandIo, path: string): Promise<string | undefined> {
  const bytes = await io.readFile(path);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}

function readContexts(
  reader: ConfigReader,
  names: readonly string[],
): Record<string, ContextSettings> {
  if (names.length > contextsMax) throw new UsageError(`contexts has more than ${contextsMax}`);
  return Object.fromEntries(
    names.map((name) => {
      checkContextName(name);
      return [name, reader.section(name, readContext)] as const;
    }),
  );
}

function readContext(reader: ConfigReader): ContextSettings {
  const texts = ['server', 'tokenFile', 'caFile'] as const;
  const given = texts.flatMap((key) => {
    const value = reader.optionalText(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  const login = reader.optionalSection('login', readLogin);
  return { ...Object.fromEntries(given), ...(login === undefined ? {} : { login }) };
}

function readLogin(reader: ConfigReader): LoginSettings {
  const caFile = reader.optionalText('caFile');
  const issuer = reader.text('issuer');
  checkIssuer(issuer);
  return {
    issuer,
    clientId: reader.text('clientId'),
    scope: reader.text('scope', defaultScope),
    use: reader.oneOf('use', ['id', 'access'], 'id'),
    ...(caFile === undefined ? {} : { caFile }),
  };
}

/** Throws `UsageError` for a text that is no address of an identity provider. */
export function checkIssuer(issuer: string): void {
  const url = URL.parse(issuer);
  const isPlain = url?.search === '' && url.hash === '' && url.username === '';
  if (url?.protocol === 'https:' && isPlain) return;
  throw new UsageError(
    `the issuer is "${issuer}"; it must be an https URL without query, fragment or user`,
  );
}

/** Throws `UsageError` for a name that no context can have. */
export function checkContextName(name: string): void {
  if (contextName.test(name)) return;
  const right = '1 to 63 letters, digits, ".", "_" and "-", a letter or digit first';
  throw new UsageError(`the context is "${name}"; its name must have ${right}`);
}

/** One change of the file: the value at these keys; undefined takes it away. */
export interface ConfigChange {
  readonly at: readonly string[];
  readonly value: unknown;
}

/** Changes the file and leaves the rest of it as it is written. */
export async function changeConfig(
  io: CommandIo,
  flags: { readonly config?: string },
  changes: readonly ConfigChange[],
): Promise<void> {
  const { path } = configPath(io, flags);
  const document = parseDocument((await textAt(io, path)) ?? '');
  if (document.contents !== null && !isMap(document.contents)) {
    throw new UsageError(`${path} must have names with values`);
  }
  for (const { at, value } of changes) {
    if (value === undefined) document.deleteIn(at);
    else document.setIn(at, value);
  }
  await io.writePrivateFile(path, new TextEncoder().encode(document.toString()));
}
