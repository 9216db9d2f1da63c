/** Answers a page from memory, under the present revision: an index without values. */
import type { Entry } from '../../contract.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const stalePage: BrokenStore = {
  name: 'stale page',
  caughtBy: 'answers no page with values older than the revision that it names',
  message: /an older value/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) => {
        const remembered = new Map<string, Entry>();
        return altered(good, {
          async list(prefix, page) {
            const { entries, before } = await good.list(prefix, page);
            if (page === undefined) return { entries, before };
            const shown = entries.map((entry) => remembered.get(entry.key) ?? entry);
            for (const entry of shown) remembered.set(entry.key, entry);
            return { entries: shown, before };
          },
        });
      },
    );
  },
};
