/** A store whose calls are timed. It does not change their results. */
import type { EntryLog, StateStore } from '@rackwright/store';

/** The timed calls; a watch is long-lived, and is not timed. */
export const storeCalls = [
  'get',
  'list',
  'put',
  'delete',
  'history',
  'past',
  'latestRevision',
  'presentRevision',
  'append',
  'back',
] as const;
export type StoreCall = (typeof storeCalls)[number];

/** The end of a call: `unknown` and `failed` mean that the store is in trouble. */
export const storeResults = ['ok', 'conflict', 'unknown', 'failed'] as const;
export type StoreResult = (typeof storeResults)[number];

/** Called with each call, at once. */
export type StoreMeter = (call: StoreCall, result: StoreResult, seconds: number) => void;

/** Another store with the same content. `elapsedMs` only grows. */
export function measuredStore(
  inner: StateStore,
  elapsedMs: () => number,
  meter: StoreMeter,
): StateStore {
  // The caller gets the store's own promise: a wrapper around each would cost as much as a read
  // from memory.
  const timed = <T extends object | number>(call: StoreCall, answer: Promise<T>): Promise<T> => {
    const sinceMs = elapsedMs();
    const measure = (result: StoreResult) => meter(call, result, (elapsedMs() - sinceMs) / 1_000);
    answer.then(
      (given) => measure(resultOf(given)),
      () => measure('failed'),
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
    historyBackwards: (...of) => timed('past', inner.historyBackwards(...of)),
    log,
    latestRevision: () => timed('latestRevision', inner.latestRevision()),
    presentRevision: () => timed('presentRevision', inner.presentRevision()),
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
