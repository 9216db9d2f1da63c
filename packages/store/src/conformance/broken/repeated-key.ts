/** Begins each page at the key that it should begin behind. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const repeatedKey: BrokenStore = {
  name: 'key repeated between pages',
  caughtBy: 'lists in pages no key twice, in the order of keys, and no more than is asked for',
  message: /behind hosts/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          async list(prefix, page) {
            const listing = await good.list(prefix, page);
            if (page?.after === undefined) return listing;
            const { entries } = await good.list(prefix);
            const again = entries.filter(({ key }) => key === page.after);
            return { ...listing, entries: [...again, ...listing.entries] };
          },
        }),
    );
  },
};
