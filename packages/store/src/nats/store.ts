/**
 * The NATS driver: one key-value bucket on JetStream, several control planes.
 *
 * Revisions are the stream's sequence numbers. The stream's leader answers reads. A leader that was
 * deposed and has not noticed may give an old answer, so `asOf` of every answer names its revision.
 * Compare-and-set goes through the leader and a majority and is exact; so is `presentRevision`,
 * which stores an empty mark.
 *
 * N1 The stream's incarnation is compared whenever its settings are at hand: at opening, after each
 *    reconnection, on list, watch and latestRevision. Another incarnation ends the handle.
 * N2 A revision that is not above the expected one means another stream under the same name: the
 *    handle ends.
 *
 * Must not: read through followers, rely on expiry, retry without the write's id.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { JetStreamClient } from '@nats-io/jetstream';
import { errorText, type Random, randomId } from '@rackwright/platform';
import type { NatsConnection } from 'nats';
import {
  asWriteId,
  type Change,
  checkListPage,
  checkPage,
  checkRevision,
  checkValue,
  checkWriteId,
  type Entry,
  type ExpectedRevision,
  type GetResult,
  HISTORY_PER_KEY,
  type KeyHistory,
  type Listing,
  type ListPage,
  PAST_CHANGES_MAX,
  type PublishedMessage,
  type StateStore,
  type StoreIncarnation,
  type StoreRevision,
  type WatchEvent,
  type WriteId,
  type WriteResult,
} from '../contract.ts';
import { type AppendResult, checkLogValue, type EntryLog, LOG_PAGE_MAX } from '../entry-log.ts';
import { StoreError } from '../errors.ts';
import { checkKey, checkPrefix, RESERVED_FIRST_SEGMENT, storeKey } from '../key.ts';
import { WakeUp } from '../pull.ts';
import { pastOf, publicChange, readResult, type StoredChange } from '../write.ts';
import { incarnationOf } from './bucket.ts';
import type { BucketChannel } from './channel.ts';
import { checkConnectedServer } from './connect.ts';
import type { DurabilityVerdict } from './durability.ts';
import { type DurabilityPath, watchDurability } from './durability-watch.ts';
import type { LogChannel } from './entries.ts';
import { isStreamNotFound } from './failures.ts';
import { KeyIndex } from './key-index.ts';
import { subjectsUnder } from './message.ts';
import type { MessageChannel } from './messages.ts';
import { retryDelayMs } from './options.ts';
import { SharedAnswer } from './shared-answer.ts';
import { SortedKeys } from './sorted-keys.ts';
import { followKeys, type WatchPath, watchStream } from './watching.ts';
import { carryWrite, changesBack, type WriteRequest } from './writing.ts';

/** Values that a listing asks for at the same time. */
const LIST_READS_MAX = 64;
/** How long a listing waits for the index of keys before it asks the servers for them. */
const KEYS_LATE_MS = 2_000;

export interface OpenedBucket {
  readonly connection: NatsConnection;
  readonly client: JetStreamClient;
  readonly channel: BucketChannel;
  readonly log: LogChannel;
  readonly messages: MessageChannel;
  readonly incarnation: StoreIncarnation;
  readonly durability: DurabilityVerdict;
  /** Asks again how the servers sync. Missing: every setting is accepted. */
  readonly checkServers?: DurabilityPath['check'];
  readonly callTimeoutMs: number;
  readonly random: Random;
}

export class NatsStore implements StateStore {
  readonly driver = 'nats';
  readonly isShared = true;
  readonly incarnation: StoreIncarnation;
  readonly survivesPowerLoss: StateStore['survivesPowerLoss'];
  readonly log: EntryLog;
  readonly #opened: OpenedBucket;
  /** Wakes watches: at each reconnection and at the end. */
  readonly #wakeUp = new WakeUp();
  readonly #calls = new Set<Promise<unknown>>();
  readonly #keys: KeyIndex;
  readonly #present = new SharedAnswer(() => this.#mark());
  #failure: StoreError | undefined;
  #closing: Promise<void> | undefined;

  constructor(opened: OpenedBucket) {
    this.incarnation = opened.incarnation;
    this.survivesPowerLoss = opened.durability.survivesPowerLoss;
    this.#opened = opened;
    this.#keys = new KeyIndex(
      () => followKeys(this.#watchPath(0, undefined)),
      (delayMs, signal) => delay(delayMs, undefined, { signal }),
    );
    this.log = {
      append: (id, value) => this.#append(id, value),
      back: async (limit, before) => {
        checkPage(limit, LOG_PAGE_MAX, before);
        return this.#read(() => opened.log.back(limit, before));
      },
    };
    void this.#followConnection();
    if (opened.checkServers !== undefined) void this.#followDurability(opened.checkServers);
  }

  async get(key: string): Promise<GetResult> {
    checkKey(key);
    const last = await this.#read(() => this.#opened.channel.last(key));
    return { ...readResult(key, last), asOf: last?.revision ?? 0 };
  }

  async list(prefix: string, page?: ListPage): Promise<Listing> {
    checkPrefix(prefix);
    checkListPage(page);
    const before = await this.latestRevision();
    const keysBehind = await this.#keysUnder(prefix, before);
    const entries: Entry[] = [];
    const { limit = Number.POSITIVE_INFINITY } = page ?? {};
    for (let after = page?.after ?? ''; entries.length < limit; ) {
      const some = keysBehind(after, Math.min(LIST_READS_MAX, limit - entries.length));
      const last = some.at(-1);
      if (last === undefined) break;
      after = last;
      entries.push(...(await this.#liveOf(some)));
    }
    return { entries, before };
  }

  /**
   * Live keys under the prefix at this revision or a newer one, and perhaps some that were deleted:
   * so many behind a key, in order.
   */
  async #keysUnder(prefix: string, before: StoreRevision) {
    const index = this.#keys;
    if (await index.caughtUp(before, KEYS_LATE_MS)) {
      return (after: string, limit: number) => index.under(prefix, after, limit);
    }
    const { channel } = this.#opened;
    const keys = new SortedKeys();
    for (const subject of subjectsUnder(channel.bucket, prefix)) {
      for (const key of await this.#read(() => channel.keysMatching(subject))) {
        if (!key.startsWith(`${RESERVED_FIRST_SEGMENT}.`)) keys.add(key);
      }
    }
    return (after: string, limit: number) => keys.under(prefix, after, limit);
  }

  async #liveOf(keys: readonly string[]): Promise<Entry[]> {
    const { channel } = this.#opened;
    const found = await Promise.all(keys.map((key) => this.#read(() => channel.last(key))));
    return found.flatMap((last) => {
      if (last?.kind !== 'put') return [];
      const { key, value, revision, writeId } = last;
      return [{ key, value, revision, writeId }];
    });
  }

  async put(
    key: string,
    value: Uint8Array,
    expected: ExpectedRevision,
    writeId?: WriteId,
  ): Promise<WriteResult> {
    checkKey(key);
    checkValue(key, value);
    return this.#write(key, Uint8Array.from(value), expected, writeId);
  }

  async delete(key: string, expected: StoreRevision, writeId?: WriteId): Promise<WriteResult> {
    checkKey(key);
    checkRevision(expected, 1);
    return this.#write(key, undefined, expected, writeId);
  }

  watch(from: StoreRevision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent> {
    checkRevision(from, 0);
    checkPrefix(prefix);
    this.#checkOpen();
    return this.#watch(from, prefix, signal);
  }

  async history(key: string): Promise<readonly Change[]> {
    checkKey(key);
    const changes: Change[] = [];
    const last = await this.#read(() => this.#opened.channel.last(key));
    const at = (revision: StoreRevision) => this.#read(() => this.#opened.channel.at(revision));
    for await (const change of changesBack({ at }, last)) {
      changes.push(publicChange(change));
      if (changes.length === HISTORY_PER_KEY) break;
    }
    return changes.reverse();
  }

  async historyBackwards(key: string, limit: number, from?: StoreRevision): Promise<KeyHistory> {
    checkKey(key);
    checkPage(limit, PAST_CHANGES_MAX, from);
    const { channel } = this.#opened;
    const at = (revision: StoreRevision) => this.#read(() => channel.atAnyAge(revision));
    const start = await (from === undefined ? this.#read(() => channel.last(key)) : at(from));
    const changes: StoredChange[] = [];
    for await (const change of changesBack({ at }, start)) {
      if (change.key !== key) break;
      changes.push(change);
      if (changes.length > limit) break;
    }
    return pastOf(changes, limit, from);
  }

  async latestRevision(): Promise<StoreRevision> {
    const info = await this.#read(() => this.#opened.channel.info());
    this.#checkIncarnation(incarnationOf(info.config));
    return info.state.last_seq;
  }

  async presentRevision(): Promise<StoreRevision> {
    this.#checkOpen();
    return this.#present.get();
  }

  /** A stream on one server cannot have another leader, so its answer is the present one. */
  async #mark(): Promise<StoreRevision> {
    const { channel } = this.#opened;
    const info = await this.#read(() => channel.info());
    this.#checkIncarnation(incarnationOf(info.config));
    if (info.config.num_replicas === 1) return info.state.last_seq;
    return this.#read(() => channel.mark());
  }

  publish(message: PublishedMessage): Promise<void> {
    for (const word of message.words) storeKey(word);
    checkWriteId(message.id);
    checkValue(message.words.join('.'), message.value);
    return this.#read(() => this.#opened.messages.publish(message));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#wakeUp.end();
    await Promise.allSettled(this.#calls);
    await this.#opened.connection.close();
  }

  async #write(
    key: string,
    value: Uint8Array | undefined,
    expected: ExpectedRevision,
    chosenId: WriteId | undefined,
  ): Promise<WriteResult> {
    if (expected !== 'absent') checkRevision(expected, 1);
    const writeId = chosenId ?? asWriteId(randomId(this.#opened.random));
    checkWriteId(writeId);
    this.#checkOpen();
    const request: WriteRequest = {
      key,
      ...(value === undefined ? {} : { value }),
      expected,
      writeId,
      mayHaveLanded: chosenId !== undefined,
    };
    const { channel } = this.#opened;
    const result = await this.#accepted(
      carryWrite(
        {
          publish: (...call) => channel.publish(...call),
          last: (of) => channel.last(of),
          at: (revision) => channel.at(revision),
          pause: delay,
          hasTime: this.#patience(),
        },
        request,
      ),
    );
    if (result.kind === 'ok') this.#checkGrowth(result.revision, expected);
    return result;
  }

  async #append(id: string, value: Uint8Array): Promise<AppendResult> {
    checkWriteId(id);
    checkLogValue(value);
    this.#checkOpen();
    const path = { pause: delay, hasTime: this.#patience() };
    return this.#accepted(this.#opened.log.append(id, Uint8Array.from(value), path));
  }

  async *#watch(
    from: StoreRevision,
    prefix: string,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<WatchEvent, void, undefined> {
    yield* watchStream(this.#watchPath(from, signal), from, prefix);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #watchPath(from: StoreRevision, signal: AbortSignal | undefined): WatchPath {
    const over = () => this.#wakeUp.ended || signal?.aborted === true;
    return {
      client: this.#opened.client,
      bucket: this.#opened.channel.bucket,
      read: () => this.#readForWatch(from, over),
      firstOf: (subject, from) => this.#opened.channel.firstOf(subject, from),
      pause: (delayMs, signal) => delay(delayMs, undefined, signal && { signal }),
      over,
      whenDisturbed: (stop: () => void) => {
        const forget = this.#wakeUp.next(stop);
        signal?.addEventListener('abort', stop, { once: true });
        return () => {
          forget();
          signal?.removeEventListener('abort', stop);
        };
      },
    };
  }

  /** A watch outlasts every outage: it asks until it is answered or over. */
  async #readForWatch(from: StoreRevision, over: () => boolean): Promise<StoreRevision> {
    for (;;) {
      try {
        return await this.latestRevision();
      } catch (error) {
        if (over()) return from;
        if (!(error instanceof StoreError && error.code === 'unavailable')) throw error;
      }
    }
  }

  /** Asks until it is answered or the time is up. Throws `unavailable`. */
  async #read<T>(ask: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    const hasTime = this.#patience();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#accepted(ask());
      } catch (error) {
        this.#checkOpen();
        if (isStreamNotFound(error)) this.#checkIncarnation(undefined);
        if (!hasTime()) {
          throw new StoreError(
            'unavailable',
            `the store did not answer within ${this.#opened.callTimeoutMs} ms: ${errorText(error)}`,
            error,
          );
        }
        await delay(retryDelayMs(attempt));
      }
    }
  }

  /** Lets `close` wait for calls that were accepted before it. */
  async #accepted<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  #patience(): () => boolean {
    const until = performance.now() + this.#opened.callTimeoutMs;
    return () => performance.now() < until && !this.#wakeUp.ended;
  }

  /** N1 and the server's version, each time that the connection reaches a server. */
  async #followConnection(): Promise<void> {
    const { connection } = this.#opened;
    for await (const status of connection.status()) {
      if (status.type !== 'reconnect') continue;
      this.#wakeUp.wakeAll();
      try {
        checkConnectedServer(connection);
        await this.latestRevision();
      } catch (error) {
        const isLasting = error instanceof StoreError && error.code !== 'unavailable';
        if (isLasting) this.#fail(error);
      }
    }
  }

  /** D1, D2. */
  async #followDurability(check: DurabilityPath['check']): Promise<void> {
    const path: DurabilityPath = {
      check,
      pause: (delayMs) => this.#pauseUntilClosed(delayMs),
      over: () => this.#wakeUp.ended,
    };
    const failure = await watchDurability(path, this.#opened.durability);
    if (failure !== undefined) this.#fail(failure);
  }

  async #pauseUntilClosed(delayMs: number): Promise<void> {
    const until = performance.now() + delayMs;
    while (!this.#wakeUp.ended && performance.now() < until) {
      const woken = new AbortController();
      const forget = this.#wakeUp.next(() => woken.abort());
      const leftMs = until - performance.now();
      // The end of the pause, or a wake-up: at a reconnection, or at the end.
      await delay(leftMs, undefined, { signal: woken.signal, ref: false }).catch(() => undefined);
      forget();
    }
  }

  #checkIncarnation(found: string | undefined): void {
    if (found === this.incarnation) return;
    this.#fail(
      new StoreError(
        'incarnationChanged',
        `the store was incarnation ${this.incarnation} and is now ${found ?? 'gone'}: it was ` +
          'deleted, replaced or restored; open it again',
      ),
    );
    this.#checkOpen();
  }

  /** N2. */
  #checkGrowth(revision: StoreRevision, expected: ExpectedRevision): void {
    if (expected === 'absent' || revision > expected) return;
    this.#checkIncarnation(`one whose revisions begin anew at ${revision}`);
  }

  #fail(failure: StoreError): void {
    if (this.#wakeUp.ended) return;
    this.#failure = failure;
    void this.close();
  }

  #checkOpen(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#wakeUp.ended) throw new StoreError('closed', 'this store is closed; open it again');
  }
}
