/** Answers pages by an index of keys that is behind, under the revision of now. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const lateIndex: BrokenStore = {
  name: 'index of keys behind',
  caughtBy: 'has on a page every key that was made before, and none that was deleted before',
  message: /lacks/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) => {
        let indexed = new Set<string>();
        return altered(good, {
          async list(prefix, page) {
            const listing = await good.list(prefix, page);
            if (page === undefined) return listing;
            const entries = listing.entries.filter(({ key }) => indexed.has(key));
            const { entries: all } = await good.list('');
            indexed = new Set(all.map(({ key }) => key));
            return { ...listing, entries };
          },
        });
      },
    );
  },
};
