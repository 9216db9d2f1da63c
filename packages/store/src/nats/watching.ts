/**
 * `watch` over an ordered consumer of the stream. The consumer may be served by any replica, which
 * can lag but never reorders; when it is lost it is made again after the last event delivered. One
 * that stays behind is lost as well, although its server sends heartbeats.
 * Holes that the stream's trimming leaves are found by the predecessor that each message names.
 */
import {
  type ConsumerMessages,
  DeliverPolicy,
  type JetStreamClient,
  type JsMsg,
  type OrderedConsumerOptions,
} from '@nats-io/jetstream';
import { HISTORY_PER_KEY, type StoreRevision, type WatchEvent } from '../contract.ts';
import { RESERVED_FIRST_SEGMENT } from '../key.ts';
import { GapGuard, publicChange, type StoredChange } from '../write.ts';
import { MARK_KEY } from './channel.ts';
import { changeOfMessage, keyOf, streamName, subjectsUnder } from './message.ts';
import { retryDelayMs } from './options.ts';

/** Messages that the server may send ahead of a slow watcher. */
const MESSAGES_AHEAD_MAX = 256;
/** How long the server waits for messages in one pull; at least 1 s by the protocol. */
const PULL_EXPIRES_MS = 5_000;
/** Two of these without a sign, and the consumer is given up for a new one. */
const HEARTBEAT_MS = 1_000;
/** How long nothing may come before the leader is asked for missed changes. */
export const SILENCE_MS = 5_000;

/** How often the store is asked before a revision counts as never reached: about 2.5 s. */
const FUTURE_READS = 8;

export interface WatchPath {
  readonly client: JetStreamClient;
  readonly bucket: string;
  /**
   * The store's last revision as its leader knows it, requested until it answers. Throws when the
   * store is another one now.
   */
  read(): Promise<StoreRevision>;
  /** The revision of the first change from `from` on that the subject takes in. Throws. */
  firstOf(subject: string, from: StoreRevision): Promise<StoreRevision | undefined>;
  /** Rejects once the signal is aborted. */
  pause(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** Whether the watch is to end. */
  over(): boolean;
  /**
   * Calls `stop` once when `over` becomes true or the connection was made anew; the answer takes
   * it back.
   */
  whenDisturbed(stop: () => void): () => void;
}

export async function* watchStream(
  path: WatchPath,
  from: StoreRevision,
  prefix: string,
): AsyncGenerator<WatchEvent, void, undefined> {
  let guard = new GapGuard(from);
  let position = from;
  if (await isFuture(path, from)) {
    yield { kind: 'compacted', reason: 'fromTheFuture' };
    return;
  }
  for (let attempt = 1; !path.over(); attempt += 1) {
    const subjects = subjectsUnder(path.bucket, prefix);
    const after = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: position + 1 };
    for await (const message of messagesOf(path, subjects, position, after)) {
      if (path.over()) return;
      position = message.seq;
      attempt = 1;
      const key = keyOf(path.bucket, message.subject);
      const isMark = key === MARK_KEY && prefix === '';
      if (!isMark && key.startsWith(`${RESERVED_FIRST_SEGMENT}.`)) continue;
      const change = changeOfMessage(key, message.seq, message.data, message.headers);
      if (!guard.follows(change)) {
        yield { kind: 'compacted', reason: 'trimmed' };
        return;
      }
      yield { ...publicChange(change), atMs: message.time.getTime() };
      // Everything has been seen, so the guard's knowledge of single keys is not needed any more.
      if (message.info.pending === 0) guard = new GapGuard(position);
    }
    if (path.over()) return;
    await path.pause(retryDelayMs(attempt));
    await path.read();
  }
}

/** The last change of a key that a follower has received; not its value. */
export type KeyChange = Pick<StoredChange, 'kind' | 'key' | 'revision'> & {
  /** True once a change of every key that is live at its revision has been yielded. */
  readonly isWhole: boolean;
};

/**
 * The last change of each key, in the order of revisions, then every later one: without values.
 * Trimming meanwhile does not matter, because a trimmed key has a newer change. Ends when the watch
 * is over; throws when the store is another one now.
 */
export async function* followKeys(path: WatchPath): AsyncGenerator<KeyChange, void, undefined> {
  let position = 0;
  for (let attempt = 1; !path.over(); attempt += 1) {
    const from =
      position === 0
        ? { deliver_policy: DeliverPolicy.LastPerSubject }
        : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: position + 1 };
    const subjects = subjectsUnder(path.bucket, '');
    // Each consumer has to catch up first: for a key with a newer change it may yield that one
    // alone. So may a consumer that is behind by as many changes as are kept of a key.
    let isWhole = false;
    const wanted = { headers_only: true, ...from };
    for await (const message of messagesOf(path, subjects, position, wanted)) {
      if (path.over()) return;
      position = message.seq;
      attempt = 1;
      const { pending } = message.info;
      isWhole = pending === 0 || (isWhole && pending < HISTORY_PER_KEY);
      const key = keyOf(path.bucket, message.subject);
      yield { ...changeOfMessage(key, message.seq, noValue, message.headers), isWhole };
    }
    if (path.over()) return;
    await path.pause(retryDelayMs(attempt));
    await path.read();
  }
}

const noValue = new Uint8Array();

/** Whether the store has never been at `from`. A new leader may take a moment to be there again. */
async function isFuture(path: WatchPath, from: StoreRevision): Promise<boolean> {
  for (let attempt = 1; attempt <= FUTURE_READS; attempt += 1) {
    if (path.over() || from <= (await path.read())) return false;
    await path.pause(retryDelayMs(attempt));
  }
  return !path.over();
}

/** Messages behind `position` until the consumer is lost or the watch is over; never throws. */
async function* messagesOf(
  path: WatchPath,
  subjects: string[],
  position: StoreRevision,
  wanted: Partial<OrderedConsumerOptions>,
): AsyncGenerator<JsMsg, void, undefined> {
  let messages: ConsumerMessages | undefined;
  let forget = () => {};
  const ended = new AbortController();
  const progress = { position, isWaiting: true };
  try {
    const options = { filter_subjects: subjects, ...wanted };
    const consumer = await path.client.consumers.get(streamName(path.bucket), options);
    const opened = await consumer.consume({
      max_messages: MESSAGES_AHEAD_MAX,
      expires: PULL_EXPIRES_MS,
      idle_heartbeat: HEARTBEAT_MS,
    });
    messages = opened;
    if (path.over()) return;
    // When the server that held the consumer has died, the client asks for the consumer for ever,
    // without an error, after a reconnection.
    forget = path.whenDisturbed(() => void opened.close());
    void endWhenReplaced(opened);
    const close = () => void opened.close();
    // It rejects once this watch has ended.
    endWhenBehind(path, subjects, progress, ended.signal).then(close, () => {});
    for await (const message of opened) {
      progress.position = message.seq;
      progress.isWaiting = false;
      yield message;
      progress.isWaiting = true;
    }
  } catch {
    // The watch is lost: the caller asks the store for its state and starts again from its
    // position.
  } finally {
    forget();
    ended.abort();
    // Not awaited: it ends only once its queue is read to the end.
    void messages?.close();
  }
}

/** The position of a watch, and whether it waits for a message now. */
interface Progress {
  readonly position: StoreRevision;
  readonly isWaiting: boolean;
}

/**
 * Resolves once nothing has come for so long although the leader had something all that time: a
 * replica that is stuck sends heartbeats for ever. Rejects once the signal is aborted.
 */
async function endWhenBehind(
  path: WatchPath,
  subjects: readonly string[],
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  let hasOwed = false;
  for (let before = progress.position; ; before = progress.position) {
    await path.pause(SILENCE_MS, signal);
    const isSilent = progress.isWaiting && progress.position === before;
    if (isSilent && hasOwed) return;
    hasOwed = isSilent && (await isOwed(path, subjects, before + 1));
  }
}

/** Whether the leader has a change from `from` on. A leader that does not answer has none. */
async function isOwed(
  path: WatchPath,
  subjects: readonly string[],
  from: StoreRevision,
): Promise<boolean> {
  try {
    const firsts = await Promise.all(subjects.map((subject) => path.firstOf(subject, from)));
    return firsts.some((revision) => revision !== undefined);
  } catch {
    // The next round asks again. A lost watch ends for its reader.
    return false;
  }
}

/**
 * The client makes a lost consumer again by itself; we end instead, because the stream may be
 * another one now and the caller must look.
 */
async function endWhenReplaced(messages: ConsumerMessages): Promise<void> {
  for await (const status of messages.status()) {
    switch (status.type) {
      // The server that held the consumer may be gone for good, without any report.
      case 'heartbeats_missed':
      case 'reset':
      case 'ordered_consumer_recreated':
      case 'consumer_not_found':
      case 'stream_not_found':
        void messages.close();
        return;
      default:
    }
  }
}
