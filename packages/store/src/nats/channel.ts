/**
 * Single requests to the bucket's leader, in the driver's terms. One call here is one request;
 * callers repeat it (`entries.ts`, `writing.ts`).
 */

import type {
  JetStreamClient,
  JetStreamManager,
  NextMsgRequest,
  StreamInfo,
} from '@nats-io/jetstream';
import { errorText } from '@rackwright/platform';
import { asWriteId, type StoreRevision, type WriteId } from '../contract.ts';
import { RESERVED_FIRST_SEGMENT } from '../key.ts';
import type { StoredChange } from '../write.ts';
import { publishFailure } from './failures.ts';
import {
  changeHeaders,
  changeOfMessage,
  keyOf,
  sourcedRevision,
  streamName,
  subjectOf,
} from './message.ts';
import type { Timeline } from './timeline.ts';

/**
 * The key of marks. The bucket keeps the last `HISTORY_PER_KEY` of them, which are empty; a watch
 * of everything shows them, and no other.
 */
export const MARK_KEY = `${RESERVED_FIRST_SEGMENT}.present`;
const MARK_ID = asWriteId('mark');
const noValue = new Uint8Array();

export type PublishOutcome =
  | { readonly kind: 'stored'; readonly revision: StoreRevision }
  /** Not stored by this request: the key's last revision was another. */
  | { readonly kind: 'wrongRevision' }
  | { readonly kind: 'uncertain'; readonly reason: string };

export class BucketChannel {
  readonly bucket: string;
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #attemptTimeoutMs: number;
  #timeline: Timeline | undefined;

  constructor(
    bucket: string,
    client: JetStreamClient,
    manager: JetStreamManager,
    attemptTimeoutMs: number,
  ) {
    this.bucket = bucket;
    this.#client = client;
    this.#manager = manager;
    this.#attemptTimeoutMs = attemptTimeoutMs;
  }

  /**
   * Stores a put, or a delete when `value` is undefined, if the key's last revision is `previous`.
   */
  async publish(
    key: string,
    value: Uint8Array | undefined,
    previous: StoreRevision,
    writeId: WriteId,
  ): Promise<PublishOutcome> {
    const kind = value === undefined ? 'delete' : 'put';
    try {
      const stored = await this.#client.publish(subjectOf(this.bucket, key), value, {
        headers: changeHeaders(kind, writeId, previous),
        timeout: this.#attemptTimeoutMs,
        expect: { lastSubjectSequence: previous, streamName: streamName(this.bucket) },
      });
      return { kind: 'stored', revision: stored.seq };
    } catch (error) {
      const failure = publishFailure(error);
      return failure === 'uncertain'
        ? { kind: 'uncertain', reason: errorText(error) }
        : { kind: failure };
    }
  }

  /**
   * Stores a mark, and returns its revision. Only a leader that has a majority can, and its stream
   * then has every acknowledged write. Throws the client's error.
   */
  async mark(): Promise<StoreRevision> {
    const stored = await this.#client.publish(subjectOf(this.bucket, MARK_KEY), noValue, {
      headers: changeHeaders('put', MARK_ID, 0),
      timeout: this.#attemptTimeoutMs,
      expect: { streamName: streamName(this.bucket) },
    });
    return stored.seq;
  }

  /** The key's last change. Throws the client's error. */
  last(key: string): Promise<StoredChange | undefined> {
    return this.#message({ last_by_subj: subjectOf(this.bucket, key) });
  }

  /** The change with this revision, if the bucket has it. Throws the client's error. */
  at(revision: StoreRevision): Promise<StoredChange | undefined> {
    return this.#message({ seq: revision });
  }

  /**
   * The revision of the first change from `from` on that the subject takes in, wildcards and all.
   * Throws the client's error.
   */
  async firstOf(subject: string, from: StoreRevision): Promise<StoreRevision | undefined> {
    const stream = streamName(this.bucket);
    const query: NextMsgRequest = { seq: from, next_by_subj: subject };
    // The client's type lacks a field that the server accepts (`JSApiMsgGetRequest.NextFor`).
    const message = await this.#manager.streams.getMessage(stream, query as never);
    return message?.seq;
  }

  /** The change with this revision in the bucket or else in its timeline. As `at`. */
  async atAnyAge(revision: StoreRevision): Promise<StoredChange | undefined> {
    const kept = await this.at(revision);
    if (kept !== undefined || this.#timeline === undefined) return kept;
    const { name, isSourced } = this.#timeline;
    return isSourced ? this.#sourced(name, revision) : this.#message({ seq: revision }, name);
  }

  /** By binary search: the stream's sourced messages are in the order of the revisions. */
  async #sourced(stream: string, revision: StoreRevision): Promise<StoredChange | undefined> {
    const { state } = await this.#manager.streams.info(stream);
    let low = state.first_seq;
    // A message is never further in front than its revision.
    let high = Math.min(state.last_seq, revision);
    while (low <= high) {
      const middle = Math.floor((low + high) / 2);
      const message = await this.#manager.streams.getMessage(stream, { seq: middle });
      const found = message === null ? 0 : sourcedRevision(message.header);
      if (message !== null && found === revision) {
        const { subject, data, header, time } = message;
        const change = changeOfMessage(keyOf(this.bucket, subject), revision, data, header);
        return { ...change, atMs: time.getTime() };
      }
      if (found < revision) low = middle + 1;
      else high = middle - 1;
    }
    return undefined;
  }

  /** From now on, changes that have left the bucket are looked for there. */
  useTimeline(timeline: Timeline | undefined): void {
    this.#timeline = timeline;
  }

  /** The stream as its leader sees it. Throws the client's error. */
  info(): Promise<StreamInfo> {
    return this.#manager.streams.info(streamName(this.bucket));
  }

  /** The keys ever written that match `subject`. Throws the client's error. */
  async keysMatching(subject: string): Promise<string[]> {
    const info = await this.#manager.streams.info(streamName(this.bucket), {
      subjects_filter: subject,
    });
    return Object.keys(info.state.subjects ?? {}).map((each) => keyOf(this.bucket, each));
  }

  async #message(
    query: { last_by_subj: string } | { seq: number },
    stream = streamName(this.bucket),
  ): Promise<StoredChange | undefined> {
    const message = await this.#manager.streams.getMessage(stream, query);
    if (message === null) return undefined;
    const { subject, seq, data, header, time } = message;
    const change = changeOfMessage(keyOf(this.bucket, subject), seq, data, header);
    return { ...change, atMs: time.getTime() };
  }
}
