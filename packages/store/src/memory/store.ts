/**
 * The memory driver: the contract over a `MemoryDisk`, for simulations and tests of code above the
 * store. A write happens at once, in the call; its answer comes by promise. `faults` says which
 * calls fail and how, so that a seed decides it.
 *
 * Must not: use time or chance of its own. `survivesPowerLoss` is honestly `no`.
 */
import { type Clock, type Random, randomId } from '@rackwright/platform';
import {
  asStoreIncarnation,
  asWriteId,
  type Change,
  checkListPage,
  checkPage,
  checkRevision,
  checkValue,
  checkWriteId,
  type ExpectedRevision,
  type GetResult,
  HISTORY_PER_KEY,
  type KeyHistory,
  type Listing,
  type ListPage,
  PAST_CHANGES_MAX,
  RETENTION_DEFAULT,
  type Retention,
  type StateStore,
  type StoreIncarnation,
  type StoreRevision,
  type WatchEvent,
  type WriteResult,
} from '../contract.ts';
import { type AppendResult, checkLogValue, type EntryLog, LOG_PAGE_MAX } from '../entry-log.ts';
import { StoreError } from '../errors.ts';
import { checkKey, checkPrefix, isUnder } from '../key.ts';
import { pullChanges, WakeUp } from '../pull.ts';
import { pastOf, publicChange, readResult } from '../write.ts';
import { type Age, type DiskWrite, MemoryDisk } from './disk.ts';

export type MemoryFault =
  | { readonly kind: 'none' }
  /** Writes: it happens, the answer is lost. Reads: `unavailable`. */
  | { readonly kind: 'answerLost' }
  /** Writes: it does not happen, the answer is lost. Reads: `unavailable`. */
  | { readonly kind: 'requestLost' }
  /** Writes: answered `unknown`, and made when `until` settles, if it then still may. */
  | { readonly kind: 'late'; readonly until: Promise<void> };

export interface MemoryCall {
  readonly kind: 'get' | 'list' | 'history' | 'put' | 'delete' | 'append' | 'back';
  /** Key or prefix; empty for the log. */
  readonly key: string;
}

export interface MemoryStoreOptions {
  readonly random: Random;
  /** Shared by handles and by lives of one store; without it a new one. */
  readonly disk?: MemoryDisk;
  /** The clock of the age limits; without it nothing is removed by age. */
  readonly clock?: Pick<Clock, 'nowMs'>;
  readonly retention?: Retention;
  /** Asked once per call. A promise delays the call. */
  readonly faults?: (call: MemoryCall) => MemoryFault | Promise<MemoryFault>;
  /** A restored store: a new incarnation. */
  readonly restored?: boolean;
}

/** Opens a handle; several may share one disk. */
export async function openMemoryStore(options: MemoryStoreOptions): Promise<StateStore> {
  const disk = options.disk ?? new MemoryDisk();
  if (disk.incarnation === '' || options.restored === true) {
    disk.incarnation = asStoreIncarnation(randomId(options.random));
  }
  return new MemoryStore(disk, options);
}

class MemoryStore implements StateStore {
  readonly driver = 'memory';
  readonly isShared = true;
  readonly survivesPowerLoss = 'no';
  readonly incarnation: StoreIncarnation;
  readonly log: EntryLog;
  readonly #disk: MemoryDisk;
  readonly #options: MemoryStoreOptions;
  readonly #wakeUp = new WakeUp();
  #forgetDisk = (): void => {};

  constructor(disk: MemoryDisk, options: MemoryStoreOptions) {
    this.#disk = disk;
    this.#options = options;
    this.incarnation = disk.incarnation;
    this.log = {
      append: (id, value) => this.#append(id, value),
      back: async (limit, before) => {
        checkPage(limit, LOG_PAGE_MAX, before);
        await this.#admitRead({ kind: 'back', key: '' });
        disk.trimEntries(this.#age(''));
        return disk.entriesBack(limit, before);
      },
    };
    this.#followDisk();
  }

  async get(key: string): Promise<GetResult> {
    checkKey(key);
    await this.#admitRead({ kind: 'get', key });
    return readResult(key, this.#disk.changesOf(key).at(-1));
  }

  async list(prefix: string, page?: ListPage): Promise<Listing> {
    checkPrefix(prefix);
    checkListPage(page);
    await this.#admitRead({ kind: 'list', key: prefix });
    const entries = this.#disk
      .lastChanges(prefix)
      .filter((change) => change.kind === 'put')
      .filter(({ key }) => key > (page?.after ?? ''))
      .slice(0, page?.limit)
      .map(({ key, value, revision, writeId }) => ({ key, value, revision, writeId }));
    return { entries, before: this.#disk.latest() };
  }

  async put(
    key: string,
    value: Uint8Array,
    expected: ExpectedRevision,
    writeId = asWriteId(randomId(this.#options.random)),
  ): Promise<WriteResult> {
    checkKey(key);
    checkValue(key, value);
    return this.#write('put', {
      key,
      value: Uint8Array.from(value),
      expected,
      writeId,
    });
  }

  async delete(
    key: string,
    expected: StoreRevision,
    writeId = asWriteId(randomId(this.#options.random)),
  ): Promise<WriteResult> {
    checkKey(key);
    return this.#write('delete', { key, expected, writeId });
  }

  watch(from: StoreRevision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    checkRevision(from, 0);
    checkPrefix(prefix);
    this.#checkOpen();
    return pullChanges(this.#disk, this.#wakeUp, from, prefix, signal);
  }

  async history(key: string): Promise<readonly Change[]> {
    checkKey(key);
    await this.#admitRead({ kind: 'history', key });
    return this.#disk.changesOf(key).slice(-HISTORY_PER_KEY).map(publicChange);
  }

  async historyBackwards(key: string, limit: number, from?: StoreRevision): Promise<KeyHistory> {
    checkKey(key);
    checkPage(limit, PAST_CHANGES_MAX, from);
    await this.#admitRead({ kind: 'history', key });
    this.#disk.trim(key, this.#age(key));
    const changes = this.#disk.changesOf(key);
    const upTo = changes.filter(({ revision }) => from === undefined || revision <= from);
    return pastOf(upTo.slice(-limit - 1).toReversed(), limit, from);
  }

  async latestRevision(): Promise<StoreRevision> {
    this.#checkOpen();
    return this.#disk.latest();
  }

  presentRevision(): Promise<StoreRevision> {
    return this.latestRevision();
  }

  async close(): Promise<void> {
    this.#forgetDisk();
    this.#wakeUp.end();
  }

  async #write(kind: 'put' | 'delete', diskWrite: DiskWrite): Promise<WriteResult> {
    if (diskWrite.expected !== 'absent') checkRevision(diskWrite.expected, 1);
    checkWriteId(diskWrite.writeId);
    this.#checkOpen();
    const age = this.#age(diskWrite.key);
    const write = age === undefined ? diskWrite : { ...diskWrite, age };
    const fault = await this.#options.faults?.({ kind, key: write.key });
    this.#checkOpen();
    switch (fault?.kind ?? 'none') {
      case 'none':
        return this.#answer(write);
      case 'answerLost':
        this.#disk.write(write);
        return unknown(write, 'the answer was lost');
      case 'requestLost':
        return unknown(write, 'the request was lost');
      case 'late':
        if (fault?.kind === 'late') void fault.until.then(() => this.#disk.write(write));
        return unknown(write, 'the answer did not come in time');
    }
  }

  #answer(write: DiskWrite): WriteResult {
    const outcome = this.#disk.write(write);
    if (outcome.kind === 'landed') {
      return { kind: 'ok', revision: outcome.revision, writeId: write.writeId };
    }
    const last = this.#disk.changesOf(write.key).at(-1);
    return { kind: 'conflict', current: readResult(write.key, last) };
  }

  async #append(id: string, value: Uint8Array): Promise<AppendResult> {
    checkWriteId(id);
    checkLogValue(value);
    this.#checkOpen();
    const kept = Uint8Array.from(value);
    const fault = await this.#options.faults?.({ kind: 'append', key: '' });
    this.#checkOpen();
    const append = () => this.#disk.append(id, kept, this.#age(''));
    switch (fault?.kind ?? 'none') {
      case 'none':
        return { kind: 'ok', position: append() };
      case 'answerLost':
        append();
        return { kind: 'unknown', reason: 'the answer was lost' };
      case 'requestLost':
        return { kind: 'unknown', reason: 'the request was lost' };
      case 'late':
        if (fault?.kind === 'late') void fault.until.then(append);
        return { kind: 'unknown', reason: 'the answer did not come in time' };
    }
  }

  #age(key: string): Age | undefined {
    const { clock, retention = RETENTION_DEFAULT } = this.#options;
    if (clock === undefined) return undefined;
    const { historyPrefixes, historyAgeMs, logAgeMs } = retention;
    const isKept = historyPrefixes.some((prefix) => isUnder(prefix, key));
    return { nowMs: clock.nowMs(), logAgeMs, ...(isKept ? { historyAgeMs } : {}) };
  }

  async #admitRead(call: MemoryCall): Promise<void> {
    this.#checkOpen();
    const fault = await this.#options.faults?.(call);
    this.#checkOpen();
    if (fault === undefined || fault.kind === 'none') return;
    throw new StoreError('unavailable', `reading ${call.key} failed; try again`);
  }

  #checkOpen(): void {
    if (this.#wakeUp.ended) throw new StoreError('closed', 'this store is closed; open it again');
  }

  #followDisk(): void {
    this.#forgetDisk = this.#disk.wakeUp.next(() => {
      this.#followDisk();
      this.#wakeUp.wakeAll();
    });
  }
}

function unknown(write: DiskWrite, reason: string): WriteResult {
  return { kind: 'unknown', writeId: write.writeId, reason };
}
