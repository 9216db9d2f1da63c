/** Keeps the last 400 writes and drops older ones, live or not: a stream with a limit. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

/** How many writes the store keeps, over all keys. */
const WRITES_KEPT = 400;

export const agedOut: BrokenStore = {
  name: 'live key aged out',
  caughtBy: 'keeps a live value however many writes follow it and however large they are',
  message: /key hosts\.old should be there/,
  makeSubject() {
    const disk = new MemoryDisk();
    const isKept = (revision: number) => revision > disk.latest() - WRITES_KEPT;
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          async get(key) {
            const answer = await good.get(key);
            if (answer.kind === 'absent' || isKept(answer.revision)) return answer;
            return { kind: 'absent', key };
          },
          async list(prefix, page) {
            const { entries, before } = await good.list(prefix, page);
            return { entries: entries.filter((entry) => isKept(entry.revision)), before };
          },
        }),
    );
  },
};
