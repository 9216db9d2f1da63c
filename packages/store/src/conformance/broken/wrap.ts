/** Frames for the broken stores: a good store with some of its answers replaced. */
import { setTimeout as delay } from 'node:timers/promises';
import { nodeRandom } from '@rackwright/platform/node';
import type { StateStore } from '../../contract.ts';
import type { MemoryDisk } from '../../memory/disk.ts';
import { openMemoryStore } from '../../memory/store.ts';
import { HandClock, type StoreUnderTest, TESTED_AGE_MS, testedRetention } from '../subject.ts';

/** One deliberately broken store and the case that was written to catch it. */
export interface BrokenStore {
  readonly name: string;
  /** Name of the conformance case that must fail on it, and how its message reads. */
  readonly caughtBy: string;
  readonly message: RegExp;
  makeSubject(): Promise<StoreUnderTest>;
}

/** `good` with the methods in `changed` instead of its own. */
export function altered(good: StateStore, changed: Partial<StateStore>): StateStore {
  return {
    driver: good.driver,
    isShared: good.isShared,
    incarnation: good.incarnation,
    survivesPowerLoss: good.survivesPowerLoss,
    get: (key) => good.get(key),
    list: (prefix, page) => good.list(prefix, page),
    put: (key, value, expected, writeId) => good.put(key, value, expected, writeId),
    delete: (key, expected, writeId) => good.delete(key, expected, writeId),
    watch: (from, prefix, signal) => good.watch(from, prefix, signal),
    history: (key) => good.history(key),
    historyBackwards: (key, limit, from) => good.historyBackwards(key, limit, from),
    log: good.log,
    latestRevision: () => good.latestRevision(),
    presentRevision: () => good.presentRevision(),
    close: () => good.close(),
    ...changed,
  };
}

/** Two handles of a memory store, opened on what `disk` answers after each crash. */
export async function brokenSubject(
  disk: (afterCrash: boolean) => MemoryDisk,
  wrap: (good: StateStore) => Promise<StateStore>,
  { obeysRestored = true }: { readonly obeysRestored?: boolean } = {},
): Promise<StoreUnderTest> {
  const clock = new HandClock();
  const retention = testedRetention(TESTED_AGE_MS);
  const open = async (on: MemoryDisk, { restored = false } = {}) =>
    wrap(await openMemoryStore({ random: nodeRandom(), disk: on, clock, retention, restored }));
  const now = disk(false);
  const subject: StoreUnderTest = {
    first: await open(now),
    second: await open(now),
    async crash() {
      const left = disk(true);
      subject.first = await open(left);
      subject.second = await open(left);
    },
    async restore() {
      await Promise.all([subject.first.close(), subject.second.close()]);
      subject.first = await open(now, { restored: obeysRestored });
      subject.second = await open(now);
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
