/** Begins each later page one key too late: an offset where a key is meant. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const skippedKey: BrokenStore = {
  name: 'key skipped between pages',
  caughtBy: 'lists in pages every live key of a prefix, whatever their size',
  message: /leave out keys/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          async list(prefix, page) {
            if (page?.after === undefined) return good.list(prefix, page);
            const [skipped] = (await good.list(prefix, page)).entries;
            const after = skipped?.key ?? page.after;
            return good.list(prefix, { ...page, after });
          },
        }),
    );
  },
};
