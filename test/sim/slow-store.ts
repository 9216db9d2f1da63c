/**
 * The store as one process reaches it: every call takes time, and a process that dies before or
 * after the write never hears of it. Sometimes a write's request or answer is lost on the way, it
 * lands late, or the store cannot be reached at all.
 */
import { type Random, randomId } from '@rackwright/platform';
import type { SimProcess } from '@rackwright/sim';
import {
  asWriteId,
  type StateStore,
  StoreError,
  type WriteId,
  type WriteResult,
} from '@rackwright/store';
import type { StoredWrite } from './acknowledged.ts';
import type { Chance } from './chance.ts';

/** What stands between a replica and the store. */
export interface StoreReach {
  /** Until then every call fails. */
  awayUntilMs: number;
  /** Counts a fault for the figures. */
  readonly count: (what: string) => void;
  readonly nowMs: () => number;
  /** Whoever has written below one of these may die right then: there is a promise to keep. */
  readonly crashesAfter: readonly string[];
  /** Told of each write that this process knows to be made. */
  readonly acknowledged: (write: StoredWrite) => void;
}

/** The crash points that are named after what was written. */
export const writtenPoint = 'wrote ';

export function slowStore(
  inner: StateStore,
  process: SimProcess,
  chance: Chance,
  reach: StoreReach,
  random: Random,
): StateStore {
  const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
    const result = await process.answer(chance.around(2), call);
    // Now and then the answer is long on its way, so that a death falls between.
    return chance.happens(0.1) ? process.answer(chance.around(20), () => result) : result;
  };
  const isAway = () => reach.nowMs() < reach.awayUntilMs;
  const read = <T>(call: () => Promise<T>): Promise<T> => {
    const fails = isAway() || chance.happens(0.003);
    // Most reads take no time, for speed; enough of them do, so that others come in between.
    if (!fails) return chance.happens(0.25) ? slowly(call) : call();
    reach.count('store read failed');
    return process.answer(chance.around(isAway() ? 2_000 : 20), () => {
      throw new StoreError('unavailable', 'the store did not answer');
    });
  };
  const write = async (
    call: () => Promise<WriteResult>,
    key: string,
    writeId: WriteId,
  ): Promise<WriteResult> => {
    const unknown = (reason: string) => ({ kind: 'unknown' as const, writeId, reason });
    if (isAway()) return process.answer(chance.around(2_000), () => unknown('no answer'));
    if (chance.happens(0.008)) {
      reach.count('write answer lost');
      await slowly(call);
      return unknown('the answer was lost');
    }
    if (chance.happens(0.004)) {
      reach.count('write request lost');
      return process.answer(chance.around(500), () => unknown('the request was lost'));
    }
    if (chance.happens(0.002)) {
      reach.count('write landed late');
      // It lands even if who asked for it is dead by then.
      process.clock.after(chance.around(3_000), () => void call().catch(() => undefined));
      return process.answer(chance.around(500), () => unknown('no answer in time'));
    }
    const result = await slowly(call);
    const boundary = reach.crashesAfter.find((prefix) => key.startsWith(prefix));
    if (boundary !== undefined) process.crashPoint(`${writtenPoint}${boundary}`);
    if (result.kind === 'ok') reach.acknowledged({ key, revision: result.revision, writeId });
    return result;
  };
  return {
    driver: inner.driver,
    isShared: inner.isShared,
    incarnation: inner.incarnation,
    survivesPowerLoss: inner.survivesPowerLoss,
    get: (key) => read(() => inner.get(key)),
    // As over a network: first the position, then the keys, each key's value later than both.
    list: async (prefix, page) => {
      if (page !== undefined) {
        // A page is full of what is there when its values are read, or it is the last one.
        const before = await inner.latestRevision();
        return { entries: (await read(() => inner.list(prefix, page))).entries, before };
      }
      const { entries: found, before } = await inner.list(prefix);
      const { entries } = await read(() => inner.list(prefix));
      const keys = new Set(found.map(({ key }) => key));
      return { entries: entries.filter(({ key }) => keys.has(key)), before };
    },
    // Who gives none leaves it to the driver; here the same one must do for each attempt.
    put: (key, value, expected, writeId = asWriteId(randomId(random))) =>
      write(() => inner.put(key, value, expected, writeId), key, writeId),
    delete: (key, expected, writeId = asWriteId(randomId(random))) =>
      write(() => inner.delete(key, expected, writeId), key, writeId),
    watch: (from, prefix, signal) => inner.watch(from, prefix, signal),
    history: (key) => read(() => inner.history(key)),
    historyBackwards: (key, limit, from) => read(() => inner.historyBackwards(key, limit, from)),
    log: inner.log,
    latestRevision: () => read(() => inner.latestRevision()),
    presentRevision: () => read(() => inner.presentRevision()),
    close: () => inner.close(),
  };
}
