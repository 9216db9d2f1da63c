/**
 * Where a restore keeps its files before they are moved to their places, and how an unfinished
 * restore is distinguished from a finished one.
 *
 * Invariants:
 * 1. The folder `restoring` is created before any other file of a restore, and is removed last.
 * 2. The store gets its place as a hard link to the staged file next to it. So a restore can
 *    recognize its own file in that place, and removes no other.
 * 3. The identity is moved last. Once it is in place, everything is.
 */
import type { Disk, LargeFiles } from '@rackwright/platform';
import type { ControlPlaneConfig } from '../config.ts';
import { BackupError, storeName } from './manifest.ts';

export interface StagingParts {
  readonly disk: Disk;
  readonly files: LargeFiles;
}

type StagingConfig = Pick<ControlPlaneConfig, 'dataFolder' | 'store'>;

const folderMode = 0o700;
const emptyFolderOnly = 'a backup is taken into an empty folder only';
/** Entries that a file system creates itself. */
const ignoredNames: ReadonlySet<string> = new Set(['lost+found']);

/** Paths of the staging folders. */
export interface Staging {
  readonly folder: string;
  readonly identity: string;
  /** On the same file system as the store's place; missing for a store that is not a file. */
  readonly store?: { readonly folder: string; readonly path: string; readonly target: string };
}

/** Where files are staged for this configuration. */
export function stagingOf({ dataFolder, store }: StagingConfig): Staging {
  const folder = `${dataFolder}/restoring`;
  const identity = `${folder}/identity`;
  switch (store.driver) {
    case 'nats':
      return { folder, identity };
    case 'sqlite': {
      const storeFolder = `${store.path}.restoring`;
      const path = `${storeFolder}/${storeName}`;
      return { folder, identity, store: { folder: storeFolder, path, target: store.path } };
    }
  }
}

/** Creates the staging folders. Throws `BackupError` when the destination is not empty. */
export async function openStage(config: StagingConfig, parts: StagingParts): Promise<Staging> {
  const staging = stagingOf(config);
  await mustBeEmpty(config, staging, parts);
  await parts.disk.makeFolder(staging.folder, folderMode);
  await parts.disk.makeFolder(staging.identity, folderMode);
  if (staging.store !== undefined) await parts.disk.makeFolder(staging.store.folder, folderMode);
  return staging;
}

async function mustBeEmpty(
  { dataFolder }: StagingConfig,
  { store }: Staging,
  { disk, files }: StagingParts,
): Promise<void> {
  const found = (await files.names(dataFolder)).find((name) => !ignoredNames.has(name));
  if (found !== undefined) {
    throw new BackupError(`${dataFolder} holds ${found}, and ${emptyFolderOnly}: move that away`);
  }
  for (const path of store === undefined ? [] : [store.target, store.folder]) {
    if ((await disk.stat(path)) === undefined) continue;
    throw new BackupError(`${path} exists, and ${emptyFolderOnly}: move that away`);
  }
}

/** What an earlier restore has left: nothing, a part, or everything. */
export type Leftover = 'nothing' | 'unfinished' | 'finished';

/** How far an earlier restore got. */
export async function leftoverOf(config: StagingConfig, disk: Disk): Promise<Leftover> {
  const { folder, identity } = stagingOf(config);
  if ((await disk.stat(folder)) === undefined) return 'nothing';
  const isStaged = (await disk.stat(identity)) !== undefined;
  const isInstalled = (await disk.stat(`${config.dataFolder}/identity/complete`)) !== undefined;
  return isInstalled && !isStaged ? 'finished' : 'unfinished';
}

/**
 * Removes the staging folders, and a placed store when the identity was not placed. May be
 * interrupted anywhere and repeated.
 */
export async function clearStage(
  config: StagingConfig,
  { disk, files }: StagingParts,
  crashPoint: (name: string) => void = () => undefined,
): Promise<void> {
  const leftover = await leftoverOf(config, disk);
  if (leftover === 'nothing') return;
  const { folder, store } = stagingOf(config);
  if (store !== undefined) {
    if (leftover === 'unfinished' && (await files.isSame(store.target, store.path))) {
      await disk.remove(store.target);
      crashPoint('cp.restoreStoreTakenAway');
    }
    await files.removeFolder(store.folder);
    crashPoint('cp.restoreStoreCleared');
  }
  await files.removeFolder(folder);
}

/**
 * For the start of a control plane: throws when a restore died before its end, and cleans up when
 * it died after its end.
 */
export async function settleRestoration(config: StagingConfig, parts: StagingParts): Promise<void> {
  const leftover = await leftoverOf(config, parts.disk);
  if (leftover === 'finished') return clearStage(config, parts);
  if (leftover === 'nothing') return;
  throw new BackupError(
    `a restore into ${config.dataFolder} did not come to its end, so this is no whole control ` +
      'plane: run the restore again, which begins anew',
  );
}

/** Moves the staged files to their places. */
export async function moveAll(
  { dataFolder }: StagingConfig,
  { identity, store }: Staging,
  { files }: StagingParts,
  crashPoint: (name: string) => void,
): Promise<void> {
  if (store !== undefined) {
    // A link to the file would lose the content of a write-ahead log next to it.
    const found = await files.list(store.folder);
    const log = found.find(({ name, sizeBytes }) => name.endsWith('-wal') && sizeBytes > 0);
    if (log !== undefined) throw new BackupError(`${store.folder}/${log.name} is not empty`);
    await files.link(store.path, store.target);
    crashPoint('cp.restoreStorePlaced');
  }
  await files.rename(identity, `${dataFolder}/identity`);
  crashPoint('cp.restoreIdentityPlaced');
}
