/** Forgets every tenth change of a watch: a full queue that drops without saying so. */
import type { WatchEvent } from '../../contract.ts';
import { MemoryDisk } from '../../memory/disk.ts';
import { altered, type BrokenStore, brokenSubject } from './wrap.ts';

async function* forgetful(events: AsyncIterable<WatchEvent>) {
  let seen = 0;
  for await (const event of events) {
    seen += 1;
    if (seen % 10 !== 0) yield event;
  }
}

export const lostEvent: BrokenStore = {
  name: 'lost watch event',
  caughtBy: 'shows from a past revision every change after it, values and deletes as they were',
  message: /put hosts/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      async (good) =>
        altered(good, {
          watch: (from, prefix, signal) => forgetful(good.watch(from, prefix, signal)),
        }),
    );
  },
};
