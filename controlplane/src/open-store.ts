/** The configured store, with the secrets from the configured files. */
import type { Clock, Disk, Random } from '@rackwright/platform';
import { openNatsStore, openSqliteStore, type Retention, type StateStore } from '@rackwright/store';
import type { RetentionConfig, StoreConfig } from './config.ts';
import { usualBytes } from './records/usual-bytes.ts';

export interface OpenStoreOptions {
  readonly disk: Disk;
  readonly random: Random;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly retention: RetentionConfig;
  /** The store was restored or imported: a new incarnation. */
  readonly restored: boolean;
  /** Starts without proof that an acknowledged write survives a loss of power. */
  readonly acceptUnprovenDurability: boolean;
}

/** Opens the store. Rejects with what is wrong and what would be right. */
export async function openStore(
  config: StoreConfig,
  options: OpenStoreOptions,
): Promise<StateStore> {
  const { random, clock, restored } = options;
  const retention = retentionOf(options.retention);
  switch (config.driver) {
    case 'sqlite':
      return openSqliteStore({
        ...{ path: config.path, random, clock, retention, restored },
        dictionary: usualBytes(),
      });
    case 'nats':
      return openNats(config, options);
  }
}

async function openNats(
  config: Extract<StoreConfig, { driver: 'nats' }>,
  { disk, random, retention: kept, restored, acceptUnprovenDurability }: OpenStoreOptions,
): Promise<StateStore> {
  const { credentialsFile, tokenFile, caFile } = config;
  const ca = caFile === undefined ? undefined : textOf(await contents(disk, caFile));
  return openNatsStore({
    servers: config.servers,
    random,
    bucket: config.bucket,
    replicas: config.replicas,
    retention: retentionOf(kept),
    restored,
    acceptUnprovenDurability,
    ...(config.monitors.length > 0
      ? { durability: { kind: 'monitors', urls: config.monitors } as const }
      : {}),
    ...(credentialsFile === undefined
      ? {}
      : {
          authentication: {
            kind: 'credentials',
            credentials: await contents(disk, credentialsFile),
          } as const,
        }),
    ...(tokenFile === undefined
      ? {}
      : {
          authentication: {
            kind: 'token',
            token: textOf(await contents(disk, tokenFile)).trim(),
          } as const,
        }),
    ...(ca === undefined ? {} : { tls: { ca } }),
  });
}

const dayMs = 86_400_000;

/** A host's timeline consists of the changes of its record and of its facts. */
function retentionOf({ historyDays, auditDays }: RetentionConfig): Retention {
  return {
    historyPrefixes: ['hosts', 'facts'],
    historyAgeMs: historyDays * dayMs,
    logAgeMs: auditDays * dayMs,
  };
}

async function contents(disk: Disk, path: string): Promise<Uint8Array> {
  const bytes = await disk.read(path);
  if (bytes === undefined) throw new Error(`${path}, which the configuration names, is missing`);
  return bytes;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
