/**
 * The control plane's configuration file: YAML or JSON. Unknown keys are refused, every default is
 * defined here, and the result is frozen. The file contains no secret: it names the files of
 * passwords and keys.
 */

import type { ConfigReader } from '@rackwright/platform';
import { optional, readConfigText } from '@rackwright/platform/config';
import {
  defaultRpcLimits,
  type ListenerLimits,
  type RpcLimits,
  rpcLimitsOf,
  sessionKeepalive,
} from '@rackwright/rpc';
import { readTraces, type TracesConfig } from '@rackwright/trace';
import { type OidcConfig, readOidc } from './access/index.ts';
import {
  type AgentLimits,
  agentLimitsOf,
  defaultAgentLimits,
  defaultSessionTiming,
  type RackLimits,
  type SessionTiming,
} from './agents/index.ts';
import { defaultTiming, type EngineTiming } from './host/index.ts';
import type { KeySourceConfig } from './secrets/index.ts';
import { defaultSweepTiming, type SweepTiming } from './workflow/index.ts';

const listenerLimits: ListenerLimits = {
  connectionsMax: defaultRpcLimits.connectionsMax,
  connectionsPerAddressMax: defaultRpcLimits.connectionsPerAddressMax,
  handshakesPerSecond: defaultRpcLimits.handshakesPerSecond,
  callsMax: defaultRpcLimits.callsMax,
  openCallsBurst: defaultRpcLimits.openCallsBurst,
};
const rpcKeys = Object.keys(defaultRpcLimits);
/** Operators are few, and agents enrol once: unknown peers get no larger part of a core. */
const operatorHandshakesPerSecond = 30;
const rackLimits: RackLimits = {
  messagesPerSecond: defaultAgentLimits.messagesPerSecond,
  bytesPerSecond: defaultAgentLimits.bytesPerSecond,
  discoveredPerMinute: defaultAgentLimits.discoveredPerMinute,
};

export interface Listen {
  /** IPv4 or IPv6 address of this machine. */
  readonly address: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export type StoreConfig =
  | { readonly driver: 'sqlite'; readonly path: string }
  | {
      readonly driver: 'nats';
      readonly servers: readonly string[];
      readonly bucket: string;
      readonly replicas: 1 | 3 | 5;
      /** HTTP monitors of all servers, which prove durability. */
      readonly monitors: readonly string[];
      /** Files with our client credentials; unset when the servers require none. */
      readonly credentialsFile?: string;
      readonly tokenFile?: string;
      readonly caFile?: string;
    };

export type StoreDriver = StoreConfig['driver'];

/** How long history can be read. */
export interface RetentionConfig {
  /** Hosts' timelines; the last 64 revisions of each host always stay. */
  readonly historyDays: number;
  readonly auditDays: number;
}

export interface ControlPlaneConfig {
  /** Identity and, with SQLite, all state. Owner-only. */
  readonly dataFolder: string;
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error' };
  readonly operators: Listen & {
    readonly limits: RpcLimits;
    /** The longest session of a browser. */
    readonly sessionHours: number;
  };
  readonly agents: Listen & {
    /** "host:port" that agents dial. */
    readonly advertise: string;
    readonly limits: RpcLimits & AgentLimits;
  };
  /** Where metrics are scraped: in plain text, without authentication. */
  readonly metrics: Listen;
  /** DNS names and IP addresses in our certificate. */
  readonly names: readonly string[];
  readonly store: StoreConfig;
  /** The source of the secrets key; unset: a file of the identity, made at the first start. */
  readonly secrets?: { readonly key: KeySourceConfig };
  readonly identity: {
    /** Lifetime of an agent's certificate; it is renewed long before its expiry. */
    readonly agentCertificateHours: number;
  };
  readonly retention: RetentionConfig;
  /** The issuer whose tokens are accepted in addition to our own. */
  readonly oidc?: OidcConfig;
  readonly engine: EngineTiming;
  readonly sessions: SessionTiming;
  readonly workflows: SweepTiming;
  /** How often every host is reconciled, in case an event was missed. */
  readonly resyncIntervalMs: number;
  /** Unset: no spans are recorded. */
  readonly traces?: TracesConfig;
  /**
   * For tests only: a file that names a crash point. The process kills itself with SIGKILL there.
   */
  readonly crashAt?: string;
}

const levels = ['debug', 'info', 'warn', 'error'] as const;
const portRange = [0, 65_535] as const;
const everywhere = '0.0.0.0';
const operatorsPortDefault = 7440;
const agentsPortDefault = 7441;
const metricsDefault = { address: '127.0.0.1', port: 7445 } as const;
const yearMs = 366 * 86_400_000;
const retentionDaysMax = 3_660;
const hostAndPort = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/;

/** Reads the text of a configuration file. Throws `ConfigError`. */
export function parseConfig(text: string): ControlPlaneConfig {
  return readConfigText(text, (reader) => {
    const config = readControlPlane(reader);
    refuseOnePort(reader, config);
    return config;
  });
}

function readControlPlane(reader: ConfigReader): ControlPlaneConfig {
  const folder = reader.text('dataFolder', '/var/lib/rackwright');
  const agents = reader.section('agents', (section) => {
    const listen = readListen(section, { address: everywhere, port: agentsPortDefault });
    const advertise = section.textThat(
      'advertise',
      (text) => hostAndPort.test(text),
      '"host:port", as agents dial it',
      `${bracketed(firstName(reader))}:${listen.port}`,
    );
    const limits = readLimits(section, [...rpcKeys, ...Object.keys(defaultAgentLimits)], {
      ...listenerLimits,
      ...rackLimits,
    });
    const bounds = { ...rpcLimitsOf(limits), ...agentLimitsOf(limits), ...sessionKeepalive };
    return { ...listen, advertise, limits: bounds };
  });
  return {
    dataFolder: folder,
    log: reader.section('log', (log) => ({ level: log.oneOf('level', levels, 'info') })),
    operators: reader.section('operators', (section) => ({
      ...readListen(section, { address: everywhere, port: operatorsPortDefault }),
      limits: rpcLimitsOf(
        readLimits(section, rpcKeys, {
          ...listenerLimits,
          handshakesPerSecond: operatorHandshakesPerSecond,
        }),
      ),
      sessionHours: section.whole('sessionHours', [1, 24], 8),
    })),
    agents,
    metrics: reader.section('metrics', (section) => readListen(section, metricsDefault)),
    names: reader.texts('names', namesDefault),
    store: reader.section('store', (section) => readStore(section, folder)),
    ...optional(
      'secrets',
      reader.optionalSection('secrets', (section) => ({ key: readKey(section) })),
    ),
    identity: reader.section('identity', (section) => ({
      agentCertificateHours: section.whole('agentCertificateHours', [1, 720], 168),
    })),
    retention: reader.section('retention', (section) => ({
      historyDays: section.whole('historyDays', [1, retentionDaysMax], 400),
      auditDays: section.whole('auditDays', [1, retentionDaysMax], 400),
    })),
    ...optional('oidc', reader.optionalSection('oidc', readOidc)),
    ...optional('traces', reader.optionalSection('traces', readTraces)),
    engine: reader.section('engine', (section) => readTiming(section, defaultTiming)),
    sessions: reader.section('sessions', (section) => readTiming(section, defaultSessionTiming)),
    workflows: reader.section('workflows', (section) => readTiming(section, defaultSweepTiming)),
    resyncIntervalMs: reader.whole('resyncIntervalMs', [1, yearMs], 60_000),
    ...optional('crashAt', reader.optionalText('crashAt')),
  };
}

const namesDefault = ['localhost', '127.0.0.1', '::1'] as const;

/** Two listeners cannot share one port. */
function refuseOnePort(reader: ConfigReader, { operators, agents }: ControlPlaneConfig): void {
  const addresses = new Set([operators.address, agents.address]);
  const meet = addresses.size === 1 || addresses.has('0.0.0.0') || addresses.has('::');
  if (operators.port !== agents.port || operators.port === 0 || !meet) return;
  const keys = ['operators.address', 'operators.port', 'agents.address', 'agents.port'];
  if (keys.some((key) => reader.hasProblem(key))) return;
  reader.refuse('operators.port', 'has to be another than agents.port');
}

function firstName(reader: ConfigReader): string {
  return reader.texts('names', namesDefault)[0] ?? 'localhost';
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function readListen(reader: ConfigReader, { address, port }: Listen): Listen {
  return {
    address: reader.text('address', address),
    port: reader.whole('port', portRange, port),
  };
}

/** Limits are a few keys; other limits follow from them. A wrong value is refused by its key. */
function readLimits<T extends { readonly [K in keyof T]: number }>(
  reader: ConfigReader,
  all: readonly string[],
  defaults: T,
): T {
  return reader.section('limits', (section) => {
    for (const key of all) {
      if (!(key in defaults)) section.withdrawn(key, 'is derived; take it out of the file');
    }
    return readTiming(section, defaults);
  });
}

function readStore(reader: ConfigReader, folder: string): StoreConfig {
  return storeReaders[reader.oneOf('driver', storeDrivers, 'sqlite')](reader, folder);
}

const storeReaders: {
  readonly [D in StoreDriver]: (reader: ConfigReader, folder: string) => StoreConfig;
} = {
  sqlite: (reader, folder) => ({
    driver: 'sqlite',
    path: reader.text('path', `${folder}/state.db`),
  }),
  nats: readNats,
};

const storeDrivers = Object.keys(storeReaders) as StoreDriver[];

const replicaCounts = [1, 3, 5] as const;

function readNats(reader: ConfigReader): StoreConfig {
  const replicaCount = reader.whole('replicas', [1, 5], 3);
  const replicas = replicaCounts.find((count) => count === replicaCount);
  return {
    driver: 'nats',
    servers: reader.texts('servers'),
    bucket: reader.text('bucket', 'rackwright'),
    replicas: replicas ?? reader.refuse('replicas', 'has to be 1, 3 or 5', 3),
    monitors: reader.texts('monitors', []),
    ...optional('credentialsFile', reader.optionalText('credentialsFile')),
    ...optional('tokenFile', reader.optionalText('tokenFile')),
    ...optional('caFile', reader.optionalText('caFile')),
  };
}

/** One of `file`, `systemdCredential` and `command`. */
function readKey(secrets: ConfigReader): KeySourceConfig {
  const [source, ...others] = secrets.section('key', readKeySources);
  if (source !== undefined && others.length === 0) return source;
  const none: KeySourceConfig = { kind: 'command', command: [] };
  if (secrets.hasProblem('key')) return none;
  const list = 'a list: the program, then its arguments';
  const text = `has to name one of file, systemdCredential and command (${list})`;
  return secrets.refuse('key', text, none);
}

function readKeySources(reader: ConfigReader): readonly KeySourceConfig[] {
  const path = reader.optionalText('file');
  const name = reader.optionalTextThat(
    'systemdCredential',
    (text) => /^[A-Za-z0-9_.-]{1,255}$/.test(text),
    'the name of a credential',
  );
  const command = reader.texts('command', []);
  return [
    ...(path === undefined ? [] : [{ kind: 'file', path } as const]),
    ...(name === undefined ? [] : [{ kind: 'systemdCredential', name } as const]),
    ...(command[0] === undefined ? [] : [{ kind: 'command', command } as const]),
  ];
}

/** Every field of a timing may be overridden; all are whole numbers, times in milliseconds. */
function readTiming<T extends { readonly [K in keyof T]: number }>(
  reader: ConfigReader,
  defaults: T,
): T {
  const names = Object.keys(defaults) as (keyof T & string)[];
  const read = names.map((name) => [name, reader.whole(name, [1, yearMs], defaults[name])]);
  return Object.fromEntries(read);
}
