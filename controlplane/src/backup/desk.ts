/**
 * The running control plane's part of a backup: it copies its store into a file of its data folder,
 * for a program of the same owner that asks by a socket in that folder. Nobody else gets at either.
 *
 * Invariants:
 * 1. At most one copy exists; what an earlier backup has left behind goes before the next.
 * 2. The copy is the store's at one moment; work goes on meanwhile.
 */
import type {
  Disk,
  LargeFiles,
  LocalCalls,
  LocalListener,
  Log,
  Random,
} from '@rackwright/platform';
import { randomId } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import { countByKey } from '../secrets/index.ts';

export interface DeskParts {
  readonly store: StateStore;
  readonly files: LargeFiles;
  readonly disk: Disk;
  readonly random: Random;
  readonly log: Log;
  /** The data folder. */
  readonly folder: string;
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
}

const socketName = 'control.sock';
const copyForm = /^copy-[0-9a-f]{32}\.db(-journal|-wal|-shm)?$/;

/** Where the running control plane of this data folder is asked. */
export function deskSocket(folder: string): string {
  return `${folder}/${socketName}`;
}

/** Copies the store; `path` of the answer is the caller's to remove. */
export async function copyStore(parts: Omit<DeskParts, 'log'>): Promise<StoreCopy> {
  const { store, files, random, folder } = parts;
  await removeCopies(parts);
  const path = `${folder}/copy-${randomId(random)}.db`;
  if (store.copyTo !== undefined) {
    const part = await files.openPart(path);
    await part.close();
    await store.copyTo(path);
  }
  // Counted after the copy: a key that is needed since is one more than necessary, never one less.
  const keyIds = [...(await countByKey(store)).keys()];
  const revision = await store.latestRevision();
  const about = { driver: store.driver, incarnation: store.incarnation, revision, keyIds };
  return store.copyTo === undefined ? about : { ...about, path };
}

/** Takes away copies that nobody needs any more. */
export async function removeCopies({
  files,
  folder,
}: Pick<DeskParts, 'files' | 'folder'>): Promise<void> {
  for (const { name } of await files.list(folder)) {
    if (copyForm.test(name)) await files.remove(`${folder}/${name}`);
  }
}

/** Answers programs of the same owner. What goes wrong is logged: without it work goes on. */
export async function openDesk(parts: DeskParts, calls: LocalCalls): Promise<LocalListener> {
  const { folder, log } = parts;
  let copying = false;
  await removeCopies(parts);
  try {
    return await calls.listen(deskSocket(folder), async (request) => {
      if (request === 'release') {
        if (!copying) await removeCopies(parts);
        return JSON.stringify({});
      }
      if (request !== 'copy') return problem('it understands copy and release');
      if (copying) return problem('another backup is being made');
      copying = true;
      try {
        const copy = await copyStore(parts);
        log.info({ revision: copy.revision }, 'the store was copied for a backup');
        return JSON.stringify(copy);
      } catch (error) {
        return problem(error instanceof Error ? error.message : String(error));
      } finally {
        copying = false;
      }
    });
  } catch (error) {
    log.warn({ error: String(error) }, 'no backup can be made while this runs');
    return { close: async () => undefined };
  }
}

function problem(words: string): string {
  return JSON.stringify({ problem: words });
}
