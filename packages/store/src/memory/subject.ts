/** The memory driver as the conformance suite sees it. */
import { setTimeout as delay } from 'node:timers/promises';
import { nodeRandom } from '@rackwright/platform/node';
import {
  HandClock,
  type StoreUnderTest,
  TESTED_AGE_MS,
  testedRetention,
} from '../conformance/subject.ts';
import type { StateStore } from '../contract.ts';
import { MemoryDisk } from './disk.ts';
import { openMemoryStore } from './store.ts';

/** Two handles on one disk; a crash forgets the handles and keeps the disk. */
export async function memoryUnderTest(
  wrap: (store: StateStore) => StateStore = (store) => store,
): Promise<StoreUnderTest> {
  const disk = new MemoryDisk();
  const clock = new HandClock();
  const retention = testedRetention(TESTED_AGE_MS);
  const open = async (restored = false) =>
    wrap(await openMemoryStore({ random: nodeRandom(), disk, clock, retention, restored }));
  const subject: StoreUnderTest = {
    first: await open(),
    second: await open(),
    async crash() {
      subject.first = await open();
      subject.second = await open();
    },
    async restore() {
      await Promise.all([subject.first.close(), subject.second.close()]);
      subject.first = await open(true);
      subject.second = await open();
    },
    wait: (delayMs) => delay(delayMs),
    growOld: async () => clock.move(TESTED_AGE_MS + 1),
    async dispose() {
      await subject.first.close();
      await subject.second.close();
    },
  };
  return subject;
}
