/** Answers from memory and flushes every fiftieth write: a kill loses acknowledged writes. */
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

/** Writes between two flushes. */
const FLUSH_EVERY = 50;

export const earlyAcknowledgement: BrokenStore = {
  name: 'early acknowledgement',
  caughtBy: 'has every acknowledged write after all processes were killed',
  message: /hosts\.h|absent/,
  makeSubject() {
    let disk = new MemoryDisk();
    let flushed = disk.copy();
    let sinceFlush = 0;
    const wrote = () => {
      sinceFlush = (sinceFlush + 1) % FLUSH_EVERY;
      if (sinceFlush === 0) flushed = disk.copy();
    };
    return brokenSubject(
      (afterCrash) => {
        if (afterCrash) disk = flushed.copy();
        return disk;
      },
      async (good) => {
        flushed.incarnation = good.incarnation;
        return altered(good, {
          put(key, value, expected, writeId) {
            wrote();
            return good.put(key, value, expected, writeId);
          },
          delete(key, expected, writeId) {
            wrote();
            return good.delete(key, expected, writeId);
          },
        });
      },
    );
  },
};
