/**
 * The memory driver: the contract over a `MemoryDisk`, for simulations and tests of what stands on
 * the store. A write happens at once, in the call; its answer comes by promise. `faults` says
 * which calls go wrong and how, so that a seed decides it.
 *
 * Must not: use time or chance of its own. `survivesPowerLoss` is honestly `no`.
 */
import { type Random, randomId } from '@rackwright/platform';
import {
  type Change,
  checkRevision,
  checkValue,
  checkWriteId,
  type Expected,
  type GetResult,
  type Listing,
  type Revision,
  type StateStore,
  type WatchEvent,
  type WriteResult,
} from '../contract.ts';
import { StoreError } from '../errors.ts';
import { checkKey, checkPrefix } from '../key.ts';
import { Bell, pullChanges } from '../pull.ts';
import { publicChange, readResult } from '../write.ts';
import { type DiskWrite, MemoryDisk } from './disk.ts';

export type MemoryFault =
  | { readonly kind: 'none' }
  /** Writes: it happens, the answer is lost. Reads: `unavailable`. */
  | { readonly kind: 'answerLost' }
  /** Writes: it does not happen, the answer is lost. Reads: `unavailable`. */
  | { readonly kind: 'requestLost' }
  /** Writes: answered `unknown`, and made when `until` settles, if it then still may. */
  | { readonly kind: 'late'; readonly until: Promise<void> };

export interface MemoryCall {
  readonly kind: 'get' | 'list' | 'history' | 'put' | 'delete';
  /** Key or prefix. */
  readonly key: string;
}

export interface MemoryStoreOptions {
  readonly random: Random;
  /** Shared by handles and by lives of one store; without it a new one. */
  readonly disk?: MemoryDisk;
  /** Asked once per call. A promise delays the call. */
  readonly faults?: (call: MemoryCall) => MemoryFault | Promise<MemoryFault>;
  /** A restored store: a new incarnation. */
  readonly restored?: boolean;
}

/** Opens a handle; several may stand on one disk. */
export async function openMemoryStore(options: MemoryStoreOptions): Promise<StateStore> {
  const disk = options.disk ?? new MemoryDisk();
  if (disk.incarnation === '' || options.restored === true) {
    disk.incarnation = randomId(options.random);
  }
  return new MemoryStore(disk, options);
}

class MemoryStore implements StateStore {
  readonly driver = 'memory';
  readonly survivesPowerLoss = 'no';
  readonly incarnation: string;
  readonly #disk: MemoryDisk;
  readonly #options: MemoryStoreOptions;
  readonly #bell = new Bell();
  #forgetDisk = (): void => {};

  constructor(disk: MemoryDisk, options: MemoryStoreOptions) {
    this.#disk = disk;
    this.#options = options;
    this.incarnation = disk.incarnation;
    this.#followDisk();
  }

  async get(key: string): Promise<GetResult> {
    checkKey(key);
    await this.#admitRead({ kind: 'get', key });
    return readResult(key, this.#disk.changesOf(key).at(-1));
  }

  async list(prefix: string): Promise<Listing> {
    checkPrefix(prefix);
    await this.#admitRead({ kind: 'list', key: prefix });
    const entries = this.#disk
      .lastChanges(prefix)
      .filter((change) => change.kind === 'put')
      .map(({ key, value, revision, writeId }) => ({ key, value, revision, writeId }));
    return { entries, before: this.#disk.latest() };
  }

  async put(
    key: string,
    value: Uint8Array,
    expected: Expected,
    writeId = randomId(this.#options.random),
  ): Promise<WriteResult> {
    checkKey(key);
    checkValue(key, value);
    return this.#write('put', { key, value: Uint8Array.from(value), expected, writeId });
  }

  async delete(
    key: string,
    expected: Revision,
    writeId = randomId(this.#options.random),
  ): Promise<WriteResult> {
    checkKey(key);
    return this.#write('delete', { key, expected, writeId });
  }

  watch(from: Revision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    checkRevision(from, 0);
    checkPrefix(prefix);
    this.#checkOpen();
    return pullChanges(this.#disk, this.#bell, from, prefix, signal);
  }

  async history(key: string): Promise<readonly Change[]> {
    checkKey(key);
    await this.#admitRead({ kind: 'history', key });
    return this.#disk.changesOf(key).map(publicChange);
  }

  async latestRevision(): Promise<Revision> {
    this.#checkOpen();
    return this.#disk.latest();
  }

  async close(): Promise<void> {
    this.#forgetDisk();
    this.#bell.end();
  }

  async #write(kind: 'put' | 'delete', write: DiskWrite): Promise<WriteResult> {
    if (write.expected !== 'absent') checkRevision(write.expected, 1);
    checkWriteId(write.writeId);
    this.#checkOpen();
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

  async #admitRead(call: MemoryCall): Promise<void> {
    this.#checkOpen();
    const fault = await this.#options.faults?.(call);
    this.#checkOpen();
    if (fault === undefined || fault.kind === 'none') return;
    throw new StoreError('unavailable', `reading ${call.key} failed; try again`);
  }

  #checkOpen(): void {
    if (this.#bell.ended) throw new StoreError('closed', 'this store is closed; open it again');
  }

  #followDisk(): void {
    this.#forgetDisk = this.#disk.bell.next(() => {
      this.#followDisk();
      this.#bell.ring();
    });
  }
}

function unknown(write: DiskWrite, reason: string): WriteResult {
  return { kind: 'unknown', writeId: write.writeId, reason };
}
