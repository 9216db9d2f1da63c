/**
 * The running control plane's part of a backup. It copies its store into a file of its data folder,
 * for a program of the same owner that asks through a socket in that folder. No other user can
 * reach the socket or the copy.
 *
 * Invariants:
 * 1. A copy is reserved for its caller and removed when the caller disconnects; until then no other
 *    caller gets one. The start removes copies that an earlier control plane has left.
 * 2. The copy shows the store at one moment, while work goes on. Everything in the response is read
 *    from the copy.
 */
import type { Incarnation } from '@rackwright/messages';
import type {
  Clock,
  Disk,
  LargeFiles,
  LocalCalls,
  LocalListener,
  Log,
  Random,
} from '@rackwright/platform';
import { errorText, randomId } from '@rackwright/platform';
import { openSqliteStore, type StateStore } from '@rackwright/store';
import { countByKey, type Secrets } from '../secrets/index.ts';
import { type SealedKeys, sealKeys } from './sealed-keys.ts';

export interface CopyServiceParts {
  readonly store: StateStore;
  readonly files: LargeFiles;
  readonly disk: Disk;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  /** The data folder. */
  readonly folder: string;
  /** Seals private keys for the backup; missing: the backup contains their key with them. */
  readonly secrets?: Pick<Secrets, 'sealBytes' | 'keyId'>;
}

/** Properties of a copy. */
export interface StoreCopy {
  readonly driver: string;
  readonly incarnation: Incarnation;
  readonly revision: number;
  /** Ids of the keys that seal its secrets. */
  readonly keyIds: readonly string[];
  /** Missing for a store that is not a file. */
  readonly path?: string;
  /** The identity's private keys, where the secrets key is kept elsewhere. */
  readonly sealedKeys?: SealedKeys;
}

const socketName = 'control.sock';
/** Suffixes of SQLite's files. */
const suffixes = ['', '-journal', '-wal', '-shm'] as const;
const copyForm = /^copy-[0-9a-f]{32}\.db(-journal|-wal|-shm)?$/;

/** The socket of the running control plane of this data folder. */
export function copySocket(folder: string): string {
  return `${folder}/${socketName}`;
}

/** Copies the store; the caller removes the file at `path`. */
export async function copyStore(parts: Omit<CopyServiceParts, 'log'>): Promise<StoreCopy> {
  const { folder, secrets } = parts;
  if (secrets === undefined) return copyFile(parts);
  const sealedKeys = await sealKeys(`${folder}/identity`, parts, secrets);
  return { ...(await copyFile(parts)), sealedKeys };
}

async function copyFile(parts: Omit<CopyServiceParts, 'log'>): Promise<StoreCopy> {
  const { store, files, random, folder } = parts;
  if (store.copyTo === undefined) return aboutStore(store);
  const path = `${folder}/copy-${randomId(random)}.db`;
  try {
    const part = await files.createPart(path);
    await part.close();
    await store.copyTo(path);
    const copy = await openSqliteStore({ ...parts, path });
    try {
      return { ...(await aboutStore(copy)), path };
    } finally {
      await copy.close();
    }
  } catch (error) {
    await removeCopy(path, files);
    throw error;
  }
}

async function aboutStore(store: StateStore): Promise<StoreCopy> {
  const keyIds = [...(await countByKey(store)).keys()];
  const revision = await store.latestRevision();
  return { driver: store.driver, incarnation: store.incarnation, revision, keyIds };
}

/** Removes one copy. */
export async function removeCopy(path: string, files: LargeFiles): Promise<void> {
  for (const suffix of suffixes) await files.remove(`${path}${suffix}`);
}

/** Removes copies that an earlier control plane has left. */
async function removeCopies({
  files,
  folder,
}: Pick<CopyServiceParts, 'files' | 'folder'>): Promise<void> {
  for (const { name } of await files.list(folder)) {
    if (copyForm.test(name)) await files.remove(`${folder}/${name}`);
  }
}

/**
 * Serves programs of the same owner. Errors are only logged: the control plane works without it.
 */
export async function openCopyService(
  parts: CopyServiceParts,
  calls: LocalCalls,
): Promise<LocalListener> {
  const { folder, log } = parts;
  await removeCopies(parts);
  const service = new CopyService(parts);
  try {
    return await calls.listen(copySocket(folder), (request, gone) =>
      request === 'copy' ? service.copy(gone) : Promise.resolve(problem('it understands copy')),
    );
  } catch (error) {
    log.warn({}, 'no backup can be made while this runs', error);
    return { close: async () => undefined };
  }
}

class CopyService {
  readonly #parts: CopyServiceParts;
  /** The caller in service; it ends when its copy is removed. */
  #copying: { readonly gone: AbortSignal; readonly ended: Promise<void> } | undefined;

  constructor(parts: CopyServiceParts) {
    this.#parts = parts;
  }

  async copy(gone: AbortSignal): Promise<string> {
    if (this.#copying?.gone.aborted) await this.#copying.ended;
    if (this.#copying !== undefined) return problem('another backup is being made');
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#copying = { gone, ended };
    const finish = (): void => {
      this.#copying = undefined;
      end();
    };
    try {
      const copy = await copyStore(this.#parts);
      this.#parts.log.info({ revision: copy.revision }, 'the store was copied for a backup');
      once(gone, () => void this.#remove(copy).finally(finish));
      return JSON.stringify(copy);
    } catch (error) {
      finish();
      return problem(errorText(error));
    }
  }

  async #remove({ path }: StoreCopy): Promise<void> {
    const { files, log } = this.#parts;
    if (path === undefined) return;
    await removeCopy(path, files).catch((error: unknown) =>
      log.warn({ path }, 'the copy for a backup could not be removed', error),
    );
  }
}

function once(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) return act();
  signal.addEventListener('abort', act, { once: true });
}

function problem(text: string): string {
  return JSON.stringify({ problem: text });
}
