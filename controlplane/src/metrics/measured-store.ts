/** A store whose calls are timed. It changes nothing of what they answer. */
import type { EntryLog, StateStore } from '@rackwright/store';

/** What is timed; a watch lasts, and is not. */
export const storeCalls = [
  'get',
  'list',
  'put',
  'delete',
  'history',
  'past',
  'latestRevision',
  'append',
  'back',
] as const;
export type StoreCall = (typeof storeCalls)[number];

/** How a call ended: `unknown` and `failed` say that the store is in trouble. */
export const storeResults = ['ok', 'conflict', 'unknown', 'failed'] as const;
export type StoreResult = (typeof storeResults)[number];

/** Told of each call, at once. */
export type StoreMeter = (call: StoreCall, result: StoreResult, seconds: number) => void;

/** Another store with the same content. `elapsedMs` only grows. */
export function measuredStore(
  inner: StateStore,
  elapsedMs: () => number,
  meter: StoreMeter,
): StateStore {
  // The caller waits for the store's own answer: one more promise around each costs as much as a
  // read of what is in memory.
  const timed = <T extends object | number>(call: StoreCall, answer: Promise<T>): Promise<T> => {
    const sinceMs = elapsedMs();
    const tell = (result: StoreResult) => meter(call, result, (elapsedMs() - sinceMs) / 1_000);
    answer.then(
      (given) => tell(resultOf(given)),
      () => tell('failed'),
    );
    return answer;
  };
  const log: EntryLog = {
    append: (...of) => timed('append', inner.log.append(...of)),
    back: (...of) => timed('back', inner.log.back(...of)),
  };
  return {
    driver: inner.driver,
    isShared: inner.isShared,
    incarnation: inner.incarnation,
    survivesPowerLoss: inner.survivesPowerLoss,
    get: (key) => timed('get', inner.get(key)),
    list: (...of) => timed('list', inner.list(...of)),
    put: (...of) => timed('put', inner.put(...of)),
    delete: (...of) => timed('delete', inner.delete(...of)),
    watch: (...of) => inner.watch(...of),
    history: (...of) => timed('history', inner.history(...of)),
    past: (...of) => timed('past', inner.past(...of)),
    log,
    latestRevision: () => timed('latestRevision', inner.latestRevision()),
    ...(inner.copyTo === undefined ? {} : { copyTo: (path) => inner.copyTo?.(path) ?? gone() }),
    ...(inner.publish === undefined
      ? {}
      : { publish: (message) => inner.publish?.(message) ?? gone() }),
    close: () => inner.close(),
  };
}

function gone(): Promise<never> {
  return Promise.reject(new Error('this store cannot be copied'));
}

function resultOf(given: object | number): StoreResult {
  if (typeof given === 'number' || !('kind' in given)) return 'ok';
  return given.kind === 'conflict' || given.kind === 'unknown' ? given.kind : 'ok';
}
