/** Each handle remembers its reads and learns of its own writes only: a cache without a watch. */
import type { GetResult } from '../../contract.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const staleGet: BrokenStore = {
  name: 'stale get',
  caughtBy: 'never answers a get with less than was acknowledged before it, unless it says so',
  message: /read an older value/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) => {
        const remembered = new Map<string, GetResult>();
        return altered(good, {
          async get(key) {
            const answer = remembered.get(key) ?? (await good.get(key));
            if (answer.kind === 'found') remembered.set(key, answer);
            return answer;
          },
          put(key, value, expected, writeId) {
            remembered.delete(key);
            return good.put(key, value, expected, writeId);
          },
          delete(key, expected, writeId) {
            remembered.delete(key);
            return good.delete(key, expected, writeId);
          },
        });
      },
    );
  },
};
