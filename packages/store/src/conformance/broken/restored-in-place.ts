/** Ignores that it was restored: a client that saw more of it assumes that it still has that. */
import { MemoryDisk } from '../../memory/disk.ts';
import { type BrokenStore, brokenSubject } from './wrap.ts';

export const restoredInPlace: BrokenStore = {
  name: 'restored in place',
  caughtBy: 'is a new incarnation once it is opened as restored, with its values, and stays it',
  message: /keeps its old incarnation/,
  makeSubject() {
    const disk = new MemoryDisk();
    return brokenSubject(
      () => disk,
      (good) => Promise.resolve(good),
      { obeysRestored: false },
    );
  },
};
