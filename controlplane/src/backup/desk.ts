/**
 * The running control plane's part of a backup: it copies its store into a file of its data folder,
 * for a program of the same owner that asks by a socket in that folder. Nobody else gets at either.
 *
 * Invariants:
 * 1. A copy is its caller's until that hangs up, and goes then; meanwhile nobody gets another. What
 *    an earlier control plane has left behind goes at the start.
 * 2. The copy is the store's at one moment; work goes on meanwhile. All that is said of it is read
 *    from itself.
 */
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

export interface DeskParts {
  readonly store: StateStore;
  readonly files: LargeFiles;
  readonly disk: Disk;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  /** The data folder. */
  readonly folder: string;
  /** Seals private keys for the backup; missing: their key goes into the backup with them. */
  readonly secrets?: Pick<Secrets, 'sealBytes' | 'keyId'>;
}

/** What a copy is of. */
export interface StoreCopy {
  readonly driver: string;
  readonly incarnation: string;
  readonly revision: number;
  /** Ids of the keys under which its secrets are. */
  readonly keyIds: readonly string[];
  /** Missing for a store that is no file. */
  readonly path?: string;
  /** The identity's private keys, where the key of secrets is kept apart. */
  readonly sealedKeys?: SealedKeys;
}

const socketName = 'control.sock';
/** What SQLite puts beside a file. */
const suffixes = ['', '-journal', '-wal', '-shm'] as const;
const copyForm = /^copy-[0-9a-f]{32}\.db(-journal|-wal|-shm)?$/;

/** Where the running control plane of this data folder is asked. */
export function deskSocket(folder: string): string {
  return `${folder}/${socketName}`;
}

/** Copies the store; `path` of the answer is the caller's to remove. */
export async function copyStore(parts: Omit<DeskParts, 'log'>): Promise<StoreCopy> {
  const { folder, secrets } = parts;
  if (secrets === undefined) return copyFile(parts);
  const sealedKeys = await sealKeys(`${folder}/identity`, parts, secrets);
  return { ...(await copyFile(parts)), sealedKeys };
}

async function copyFile(parts: Omit<DeskParts, 'log'>): Promise<StoreCopy> {
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

/** Takes one copy away. */
export async function removeCopy(path: string, files: LargeFiles): Promise<void> {
  for (const suffix of suffixes) await files.remove(`${path}${suffix}`);
}

/** Takes away copies that an earlier control plane has left. */
async function removeCopies({ files, folder }: Pick<DeskParts, 'files' | 'folder'>): Promise<void> {
  for (const { name } of await files.list(folder)) {
    if (copyForm.test(name)) await files.remove(`${folder}/${name}`);
  }
}

/** Answers programs of the same owner. What goes wrong is logged: without it work goes on. */
export async function openDesk(parts: DeskParts, calls: LocalCalls): Promise<LocalListener> {
  const { folder, log } = parts;
  await removeCopies(parts);
  const desk = new Desk(parts);
  try {
    return await calls.listen(deskSocket(folder), (request, gone) =>
      request === 'copy' ? desk.copy(gone) : Promise.resolve(problem('it understands copy')),
    );
  } catch (error) {
    log.warn({}, 'no backup can be made while this runs', error);
    return { close: async () => undefined };
  }
}

class Desk {
  readonly #parts: DeskParts;
  /** Whose turn it is; a turn ends when its copy is gone. */
  #turn: { readonly gone: AbortSignal; readonly ended: Promise<void> } | undefined;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  async copy(gone: AbortSignal): Promise<string> {
    if (this.#turn?.gone.aborted) await this.#turn.ended;
    if (this.#turn !== undefined) return problem('another backup is being made');
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#turn = { gone, ended };
    const finish = (): void => {
      this.#turn = undefined;
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

function problem(words: string): string {
  return JSON.stringify({ problem: words });
}
