/** Keeps the entries of its log for ever. */
import type { LogEntry } from '../../entry-log.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

export const agelessLog: BrokenStore = {
  name: 'log without age',
  caughtBy: 'lets go by age what is kept by age, and says so, but never the last 64 changes',
  message: /entries outlive their age/,
  makeSubject() {
    const disk = new MemoryDisk();
    const all: LogEntry[] = [];
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          log: {
            async append(id, value) {
              const result = await good.log.append(id, value);
              const isNew = all.every((entry) => entry.id !== id);
              if (result.kind === 'ok' && isNew) all.push({ id, value, atMs: 0, ...result });
              return result;
            },
            async back(limit, before = Infinity) {
              const older = all.filter(({ position }) => position < before);
              return { entries: older.slice(-limit).reverse(), more: older.length > limit };
            },
          },
        }),
    );
  },
};
