/**
 * The store as one process reaches it: every call takes time, and a process that dies before or
 * after the write never hears of it. Sometimes the answer of a write is lost on the way.
 */
import type { SimProcess } from '@rackwright/sim';
import type { StateStore, WriteResult } from '@rackwright/store';
import type { HardwareChance } from './hardware.ts';

export function slowStore(
  inner: StateStore,
  process: SimProcess,
  chance: HardwareChance,
): StateStore {
  const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
    const result = await process.answer(chance.around(2), call);
    return process.answer(chance.around(1), () => result);
  };
  const write = async (call: () => Promise<WriteResult>, writeId: string): Promise<WriteResult> => {
    const lost = chance.happens(0.01);
    const result = await slowly(call);
    return lost ? { kind: 'unknown', writeId, reason: 'the answer was lost' } : result;
  };
  return {
    driver: inner.driver,
    incarnation: inner.incarnation,
    survivesPowerLoss: inner.survivesPowerLoss,
    get: (key) => slowly(() => inner.get(key)),
    list: (prefix) => slowly(() => inner.list(prefix)),
    put: (key, value, expected, writeId = '') =>
      write(() => inner.put(key, value, expected, writeId), writeId),
    delete: (key, expected, writeId = '') =>
      write(() => inner.delete(key, expected, writeId), writeId),
    watch: (from, prefix, signal) => inner.watch(from, prefix, signal),
    history: (key) => slowly(() => inner.history(key)),
    latestRevision: () => slowly(() => inner.latestRevision()),
    close: () => inner.close(),
  };
}
