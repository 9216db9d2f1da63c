/** Counts revisions from its own start, as a counter kept in memory would: 1 again after a kill. */
import type { Change, GetResult, WatchEvent, WriteResult } from '../../contract.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

/** `counted` with every revision in it lowered by `base`. */
function lowered<T extends Change | GetResult | WatchEvent | WriteResult>(
  counted: T,
  base: number,
) {
  if (!('revision' in counted) || counted.revision === undefined) return counted;
  return { ...counted, revision: counted.revision - base };
}

async function* shown(events: AsyncIterable<WatchEvent>, base: number) {
  for await (const event of events) yield lowered(event, base);
}

export const revisionReset: BrokenStore = {
  name: 'revision reset',
  caughtBy: 'never takes a revision back: through deletes, other keys, and a kill',
  message: /revision -?\d+ came after/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) => {
        const base = await good.latestRevision();
        return altered(good, {
          get: async (key) => lowered(await good.get(key), base),
          put: async (key, value, expected, writeId) => {
            const shifted = expected === 'absent' ? expected : expected + base;
            return lowered(await good.put(key, value, shifted, writeId), base);
          },
          delete: async (key, expected, writeId) =>
            lowered(await good.delete(key, expected + base, writeId), base),
          watch: (from, prefix, signal) => shown(good.watch(from + base, prefix, signal), base),
          history: async (key) => (await good.history(key)).map((each) => lowered(each, base)),
          latestRevision: async () => (await good.latestRevision()) - base,
          presentRevision: async () => (await good.presentRevision()) - base,
        });
      },
    );
  },
};
