/** The store that the configuration names, with the secrets in the files that it names. */
import type { Disk, Random } from '@rackwright/platform';
import { openNatsStore, openSqliteStore, type StateStore } from '@rackwright/store';
import type { StoreConfig } from './config.ts';

export interface OpenStoreOptions {
  readonly disk: Disk;
  readonly random: Random;
  /** The store was restored or imported: a new incarnation. */
  readonly restored: boolean;
  /** Start although nobody has shown that an acknowledged write survives a loss of power. */
  readonly acceptUnprovenDurability: boolean;
}

/** Opens the store. Rejects with what is wrong and what would be right. */
export async function openStore(
  config: StoreConfig,
  options: OpenStoreOptions,
): Promise<StateStore> {
  const { disk, random, restored } = options;
  if (config.driver === 'sqlite') {
    return openSqliteStore({ path: config.path, random, restored });
  }
  const { credentialsFile, tokenFile, caFile } = config;
  const ca = caFile === undefined ? undefined : textOf(await contents(disk, caFile));
  return openNatsStore({
    servers: config.servers,
    random,
    bucket: config.bucket,
    replicas: config.replicas,
    restored,
    acceptUnprovenDurability: options.acceptUnprovenDurability,
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

async function contents(disk: Disk, path: string): Promise<Uint8Array> {
  const bytes = await disk.read(path);
  if (bytes === undefined) throw new Error(`${path}, which the configuration names, is missing`);
  return bytes;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
