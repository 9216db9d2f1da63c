/**
 * The address of the control plane and the credential: flags before environment before the context
 * in use before the rest of the file.
 */
import { type CallOptions, type Channel, connect, type Repeats } from '@rackwright/rpc';
import type { CommandIo } from './command-io.ts';
import { type ConfigFile, type ContextSettings, configPath, readConfig } from './config-file.ts';
import { UsageError } from './failure.ts';

/** Flags that every command that speaks to the control plane has. */
export interface ConnectionFlags {
  readonly server?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly config?: string;
  readonly context?: string;
}

/** The server's address, and the credential: a file with a token, or a sign-in of this context. */
export interface Settings {
  readonly server: string;
  readonly caFile: string;
  readonly proof: Proof;
}

type Proof =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'login'; readonly context: string; readonly settings: ContextSettings };

const variables = {
  server: 'RACKWRIGHT_SERVER',
  tokenFile: 'RACKWRIGHT_TOKEN_FILE',
  caFile: 'RACKWRIGHT_CA_FILE',
} as const;
const flagNames = { server: '--server', tokenFile: '--token-file', caFile: '--ca-file' } as const;
const contextVariable = 'RACKWRIGHT_CONTEXT';

/** An open connection to the control plane. */
export interface Connection {
  readonly channel: Channel;
  /** Token and Ctrl-C, for every call. */
  readonly defaults: CallOptions;
  /** "HOST:PORT" */
  readonly server: string;
  /** The trusted authorities of its certificate, and the file that names them. */
  readonly caPem: string;
  readonly caFile: string;
  /** The same error, or one that says why nothing was reached. */
  explained(error: unknown): Promise<unknown>;
}

/** The context in use, and its settings; no name: the file without contexts. */
export async function contextInUse(
  io: CommandIo,
  flags: ConnectionFlags,
): Promise<{ readonly name: string | undefined; readonly settings: ContextSettings }> {
  const file = await readConfig(io, flags);
  const name = flags.context ?? io.environment[contextVariable] ?? file.current;
  if (name === undefined) return { name, settings: file.plain };
  const settings = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined;
  if (settings !== undefined) return { name, settings: { ...file.plain, ...settings } };
  throw new UsageError(`there is no context "${name}"; ${knownContexts(io, flags, file)}`);
}

function knownContexts(io: CommandIo, flags: ConnectionFlags, { contexts }: ConfigFile): string {
  const names = Object.keys(contexts);
  const { path } = configPath(io, flags);
  return names.length === 0 ? `${path} has none` : `${path} has ${names.join(', ')}`;
}

/** The settings from all places. Throws `UsageError` naming everything that is missing. */
export async function readSettings(io: CommandIo, flags: ConnectionFlags): Promise<Settings> {
  const { name, settings } = await contextInUse(io, flags);
  const given = (key: keyof typeof variables) => flags[key] ?? io.environment[variables[key]];
  const server = given('server') ?? settings.server;
  const caFile = given('caFile') ?? settings.caFile;
  const named = given('tokenFile') ?? settings.tokenFile;
  const login: Proof | undefined =
    settings.login === undefined
      ? undefined
      : { kind: 'login', context: name ?? 'default', settings };
  const proof: Proof | undefined = named === undefined ? login : { kind: 'file', path: named };
  if (server !== undefined && proof !== undefined && caFile !== undefined) {
    return { server, caFile, proof };
  }
  const found = { server, tokenFile: proof, caFile };
  const missing = (['server', 'tokenFile', 'caFile'] as const)
    .filter((key) => found[key] === undefined)
    .map((key) => `${flagNames[key]} (or ${variables[key]}, or ${key} in the file)`);
  const { path } = configPath(io, flags);
  throw new UsageError(
    `the control plane is not known: give ${missing.join(', ')}. ` +
      `The file is --config, RACKWRIGHT_CONFIG or ${path}; \`rackwright context set\` writes it.`,
  );
}

/** Connects by the settings. */
export async function openConnection(io: CommandIo, flags: ConnectionFlags): Promise<Connection> {
  const { server, caFile, proof } = await readSettings(io, flags);
  const token = await tokenOf(io, proof);
  const caPem = await readText(io, caFile, '--ca-file');
  if (!/^\S+:\d+$/.test(server)) {
    throw new UsageError(`--server is "${server}"; it must be HOST:PORT`);
  }
  return {
    channel: (io.connect ?? connect)({ target: server, caPem }),
    defaults: {
      headers: { authorization: `Bearer ${token}` },
      signal: io.signal,
      repeats: repeatsOf(io, server),
    },
    ...{ server, caPem, caFile },
    explained: async (error) => {
      const { explainUnreached } = await import('./unreached.ts');
      return explainUnreached(io, { server, caPem, caFile }, error);
    },
  };
}

/** A person who waits gets the reason, once. */
function repeatsOf({ clock, random, err }: CommandIo, server: string): Repeats {
  let isWarned = false;
  const onRepeat = (): void => {
    if (!isWarned) err.write(`${server} is unavailable now: trying again for a few seconds\n`);
    isWarned = true;
  };
  return { clock, random, onRepeat };
}

async function tokenOf(io: CommandIo, proof: Proof): Promise<string> {
  if (proof.kind === 'login') {
    const { signedInToken } = await import('./login/kept-sign-in.ts');
    return signedInToken(io, proof.context, proof.settings);
  }
  const token = (await readText(io, proof.path, '--token-file')).trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new UsageError(`--token-file ${proof.path} holds no token: one word on one line`);
}

async function readText(io: CommandIo, path: string, flag: string): Promise<string> {
  const bytes = await io.readFile(path);
  if (bytes === undefined) throw new UsageError(`${flag} names ${path}, which does not exist`);
  return new TextDecoder().decode(bytes);
}
