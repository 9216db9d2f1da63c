/** Answers before the entry is kept: the latest entries are lost with the process. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const forgetfulLog: BrokenStore = {
  name: 'log in memory only',
  caughtBy: 'has the past of a key and the entries of the log after all processes were killed',
  message: /entry-0/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) => {
        const own = new MemoryDisk();
        const shared = lives.get(disk) ?? { own, handles: 0 };
        // Handles are opened in pairs: the third is the first of another life.
        shared.handles += 1;
        if (shared.handles % 2 === 1) shared.own = own;
        lives.set(disk, shared);
        const { own: log } = shared;
        return altered(good, {
          log: {
            append: async (id, value) => ({
              kind: 'ok',
              position: log.append(id, value, undefined),
            }),
            back: async (limit, before) => log.entriesBack(limit, before),
          },
        });
      },
    );
  },
};

const lives = new WeakMap<MemoryDisk, { own: MemoryDisk; handles: number }>();
