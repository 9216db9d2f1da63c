/** Names the revision after its page's own: a watch from there misses one change. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const pageGap: BrokenStore = {
  name: 'gap behind a page',
  caughtBy: 'misses nothing when pages are followed by a watch from the first one’s revision',
  message: /neither a page nor the watch/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          async list(prefix, page) {
            const { entries, before } = await good.list(prefix, page);
            return { entries, before: page === undefined ? before : before + 1 };
          },
        }),
    );
  },
};
