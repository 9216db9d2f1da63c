/**
 * Where the control plane is and how to prove who we are: flags before environment before file.
 *
 *     server: cp.example:7440
 *     tokenFile: /home/me/rackwright.token
 *     caFile: /home/me/rackwright-ca.pem
 */

import { ConfigReader } from '@rackwright/platform';
import { type CallOptions, type Channel, connect } from '@rackwright/rpc';
import { parse } from 'yaml';
import { UsageError } from './failure.ts';
import type { World } from './world.ts';

/** Flags that every command that speaks to the control plane has. */
export interface ConnectionFlags {
  readonly server?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly config?: string;
}

export interface Settings {
  readonly server: string;
  readonly tokenFile: string;
  readonly caFile: string;
}

type Partly = { readonly [K in keyof Settings]?: string | undefined };

const variables = {
  server: 'RACKWRIGHT_SERVER',
  tokenFile: 'RACKWRIGHT_TOKEN_FILE',
  caFile: 'RACKWRIGHT_CA_FILE',
} as const;
const flagNames = { server: '--server', tokenFile: '--token-file', caFile: '--ca-file' } as const;
const configVariable = 'RACKWRIGHT_CONFIG';

/** An open connection to the control plane. */
export interface Connection {
  readonly channel: Channel;
  /** Token and Ctrl-C, for every call. */
  readonly defaults: CallOptions;
}

/** The settings from all places. Throws `UsageError` naming everything that is missing. */
export async function readSettings(world: World, flags: ConnectionFlags): Promise<Settings> {
  const file = await readFileSettings(world, flags);
  const found: Partly = {
    server: flags.server ?? world.environment[variables.server] ?? file.server,
    tokenFile: flags.tokenFile ?? world.environment[variables.tokenFile] ?? file.tokenFile,
    caFile: flags.caFile ?? world.environment[variables.caFile] ?? file.caFile,
  };
  const { server, tokenFile, caFile } = found;
  if (server !== undefined && tokenFile !== undefined && caFile !== undefined) {
    return { server, tokenFile, caFile };
  }
  const missing = (['server', 'tokenFile', 'caFile'] as const)
    .filter((key) => found[key] === undefined)
    .map((key) => `${flagNames[key]} (or ${variables[key]}, or ${key} in the file)`);
  throw new UsageError(
    `the control plane is not known: give ${missing.join(', ')}. ` +
      `The file is --config, ${configVariable} or ${defaultFile(world)}.`,
  );
}

/** Connects by the settings. */
export async function openConnection(world: World, flags: ConnectionFlags): Promise<Connection> {
  const settings = await readSettings(world, flags);
  const token = (await readText(world, settings.tokenFile, '--token-file')).trim();
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`--token-file ${settings.tokenFile} holds no token: one word on one line`);
  }
  const caPem = await readText(world, settings.caFile, '--ca-file');
  if (!/^\S+:\d+$/.test(settings.server)) {
    throw new UsageError(`--server is "${settings.server}"; it must be HOST:PORT`);
  }
  return {
    channel: (world.connect ?? connect)({ target: settings.server, caPem }),
    defaults: { headers: { authorization: `Bearer ${token}` }, signal: world.signal },
  };
}

function defaultFile({ environment, homeFolder }: World): string {
  const folder = environment['XDG_CONFIG_HOME'] ?? `${homeFolder}/.config`;
  return `${folder}/rackwright/config.yaml`;
}

async function readFileSettings(world: World, flags: ConnectionFlags): Promise<Partly> {
  const named = flags.config ?? world.environment[configVariable];
  const path = named ?? defaultFile(world);
  const bytes = await world.readFile(path);
  if (bytes === undefined) {
    if (named === undefined) return {};
    throw new UsageError(`the configuration file ${path} does not exist`);
  }
  try {
    const reader = new ConfigReader(parse(new TextDecoder().decode(bytes)) ?? undefined);
    const settings: Partly = {
      server: reader.optionalText('server'),
      tokenFile: reader.optionalText('tokenFile'),
      caFile: reader.optionalText('caFile'),
    };
    reader.end();
    return settings;
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`${path}: ${words}`, { cause });
  }
}

async function readText(world: World, path: string, flag: string): Promise<string> {
  const bytes = await world.readFile(path);
  if (bytes === undefined) throw new UsageError(`${flag} names ${path}, which does not exist`);
  return new TextDecoder().decode(bytes);
}
