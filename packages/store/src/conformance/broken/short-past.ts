/** Returns as a key's past only the changes that it keeps anyway, as if those were all. */
import { HISTORY_PER_KEY } from '../../contract.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const shortPast: BrokenStore = {
  name: 'past cut short',
  caughtBy:
    'keeps every change of a key that is kept by age, and tells them in pages without a hole',
  message: /put aged\.a 0 /,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          async historyBackwards(key, limit) {
            const past = await good.historyBackwards(key, Math.min(limit, HISTORY_PER_KEY));
            return { changes: past.changes, before: { kind: 'nothing' } };
          },
        }),
    );
  },
};
