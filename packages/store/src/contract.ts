/**
 * StateStore: where the control plane keeps all state (DESIGN §10). Every driver passes
 * `conformance/`, and nothing may be relied on that is not written here.
 *
 * Invariants of every store:
 *  S1 One key is one record; compare-and-set on one key is the only way to write.
 *  S2 Of several writes that expect the same revision of a key, at most one is `ok`.
 *  S3 Revisions are positive safe integers that grow over the whole store, deletes included, for
 *     as long as `incarnation` stays the same. They never repeat and never go back.
 *  S4 A write answered `ok` survives SIGKILL of every process involved.
 *  S5 A read is linearizable, or says by `asOf` how old it may be.
 *  S6 `watch` is in order, at least once and without gaps, or ends with `compacted`.
 *  S7 A live value never disappears by age, number or size of other values.
 *  S8 Beside the keys stands one log of entries, which are only ever added and go by age alone.
 *
 * Must not: offer writes over several keys, promise a snapshot over several keys, interpret values.
 */
import type { EntryLog } from './entry-log.ts';
import { StoreError } from './errors.ts';
import { checkKey } from './key.ts';

/** Position in the store's one order of writes: 1 … 2^53 − 1. 0 means "before everything". */
export type StoreRevision = number;

/** One write of one caller, by which a repeated write is recognized. */
export type WriteId = string & { readonly __brand: 'WriteId' };

/** For an id that the caller makes, or that a store has kept; `checkWriteId` judges its shape. */
export function asWriteId(text: string): WriteId {
  return text as WriteId;
}

/**
 * The id of one unbroken history of a store: one that is restored or imported gets another. It is
 * the `Incarnation` of the messages, which this package does not know.
 */
export type StoreIncarnation = string & { readonly __brand: 'Incarnation' };

/** For an id that a driver has made or read. */
export function asStoreIncarnation(text: string): StoreIncarnation {
  return text as StoreIncarnation;
}

/**
 * A write's condition on its key: `'absent'` no live value (never written, or deleted); a number
 * that the key's last write, put or delete, has exactly this revision.
 */
export type ExpectedRevision = StoreRevision | 'absent';

/** A live value. `value` must not be changed by its receiver. */
export interface Entry {
  readonly key: string;
  readonly value: Uint8Array;
  readonly revision: StoreRevision;
  /** Identifies the one write that made this value; see `StateStore.put`. */
  readonly writeId: WriteId;
}

export type GetResult =
  | (Entry & {
      readonly kind: 'found';
      /** Missing: linearizable. Present: the state at this revision or later, perhaps not now's. */
      readonly asOf?: StoreRevision;
    })
  | {
      readonly kind: 'absent';
      readonly key: string;
      /** The delete that made it absent, where the store still knows one. */
      readonly revision?: StoreRevision;
      readonly writeId?: WriteId;
      readonly asOf?: StoreRevision;
    };

export type WriteResult =
  | { readonly kind: 'ok'; readonly revision: StoreRevision; readonly writeId: WriteId }
  /** Not written. `current` is the present value, when it could be read. */
  | { readonly kind: 'conflict'; readonly current?: GetResult }
  /**
   * May have been written, or may still be. Repeat the call with the same arguments and this
   * `writeId`, or ask `findWrite`; never assume either outcome.
   */
  | { readonly kind: 'unknown'; readonly writeId: WriteId; readonly reason: string };

/** One write as history and watch show it. */
export type Change =
  | (Entry & { readonly kind: 'put'; readonly atMs?: number })
  | {
      readonly kind: 'delete';
      readonly key: string;
      readonly revision: StoreRevision;
      readonly writeId: WriteId;
      /** When the store accepted it, by the store's clock; missing where unknown. */
      readonly atMs?: number;
    };

/** Changes of one key, from one of them backwards. */
export interface KeyHistory {
  /** Newest first. */
  readonly changes: readonly Change[];
  /**
   * The key's earlier history: `nothing`; `more`, to be read from that revision on; or changes that
   * are `gone`.
   */
  readonly before:
    | { readonly kind: 'nothing' }
    | { readonly kind: 'more'; readonly from: StoreRevision }
    | { readonly kind: 'gone' };
}

export type WatchEvent =
  | Change
  /**
   * Always the last event: the changes after `from` are no longer complete, or (`fromTheFuture`)
   * the store has never reached `from`. List again and watch from the listing's `before`.
   */
  | { readonly kind: 'compacted'; readonly reason: 'trimmed' | 'fromTheFuture' };

export interface Listing {
  /** Live values under the prefix, ordered by key (code units). Not a snapshot. */
  readonly entries: readonly Entry[];
  /**
   * Each value is the one of this revision or a newer one. `watch(before, prefix)` shows every
   * change that this listing may have missed; of several pages, from the `before` of the first.
   */
  readonly before: StoreRevision;
}

/** A part of a listing. */
export interface ListPage {
  /** Only keys behind this one, which need not exist; unset or empty: from the first one. */
  readonly after?: string;
  /** Most entries, from 1 to `LIST_PAGE_MAX`. A page with fewer is the last one. */
  readonly limit: number;
}

export interface StateStore {
  /** Which driver this is, for logs and messages: `sqlite`, `nats`, `memory`. */
  readonly driver: string;
  /** Several processes may hold it at once; otherwise it has one owner. */
  readonly isShared: boolean;
  /** Random id made when the store was created, and anew when it is opened as restored. */
  readonly incarnation: StoreIncarnation;
  /** Whether an acknowledged write survives the loss of power of every machine involved. */
  readonly survivesPowerLoss: 'yes' | 'no' | 'unknown';

  /** Throws `invalidKey`, `unavailable`, `closed`, `incarnationChanged`. */
  get(key: string): Promise<GetResult>;

  /**
   * The live values whose key is `prefix` or lies below it by whole segments: `hosts.a` lists
   * `hosts.a` and `hosts.a.b`, not `hosts.ab`; `''` lists everything. With `page` only the values
   * of that page: its cost depends on its size, for any number of keys. Throws `invalidPrefix`,
   * `invalidKey` and `invalidRevision` for a page that cannot be, `unavailable`, `closed`,
   * `incarnationChanged`.
   */
  list(prefix: string, page?: ListPage): Promise<Listing>;

  /**
   * Writes `value` (at most `VALUE_BYTES_MAX` bytes) if the key is as `expected`. The answer comes
   * once the outcome is durable (S4). `writeId` names this write (1–64 of `A–Z a–z 0–9 _ -`) and
   * must never be used for another; without it the store makes one. The repetition of a write, with
   * all its arguments, is `ok` with its revision while that is among the key's kept changes, even
   * if others followed. Throws `invalidKey`, `valueTooLarge`, `invalidWriteId`, `invalidRevision`,
   * `closed`, `incarnationChanged`; an undecidable outcome is `unknown`, never thrown.
   */
  put(
    key: string,
    value: Uint8Array,
    expected: ExpectedRevision,
    writeId?: WriteId,
  ): Promise<WriteResult>;

  /**
   * Deletes the key if its last write has revision `expected`. The answer's revision is that of
   * the delete. Otherwise as `put`.
   */
  delete(key: string, expected: StoreRevision, writeId?: WriteId): Promise<WriteResult>;

  /**
   * Every change of a key under `prefix` (as `list`) with a revision greater than `from`, until
   * the iteration is left, `signal` is aborted or the store is closed: these end it normally.
   * The same change may come twice after a reconnection, then followed by all later ones again.
   * A watch of everything (`''`) reaches each answer of `presentRevision`: it also shows changes of
   * a driver's own keys, which no listing has.
   * Throws `invalidPrefix`, `invalidRevision`, `closed`, `incarnationChanged`.
   */
  watch(from: StoreRevision, prefix: string, signal?: AbortSignal): AsyncIterable<WatchEvent>;

  /**
   * The last changes of one key, oldest first: at least the last `HISTORY_PER_KEY`, deletes
   * included; empty for a key never written.
   */
  history(key: string): Promise<readonly Change[]>;

  /**
   * At most `limit` (1 to `PAST_CHANGES_MAX`) changes of a key, from its last one or from the one
   * with revision `from` backwards, without a hole: at least the last `HISTORY_PER_KEY`, and those
   * that the store was opened to keep by age (`Retention`). Throws as `get`, and `invalidRevision`.
   */
  historyBackwards(key: string, limit: number, from?: StoreRevision): Promise<KeyHistory>;

  /** The log (S8). */
  readonly log: EntryLog;

  /**
   * A revision that the store has reached, 0 or more: that of its last write or, as `asOf` of a
   * read, an older one. It costs no write.
   */
  latestRevision(): Promise<StoreRevision>;

  /**
   * At least the revision of every write that was acknowledged before this call, by any process. A
   * store of several servers may have to write for it, so it is for questions that an old answer
   * would decide wrongly. Calls at the same time share one write. Throws `unavailable`, `closed`,
   * `incarnationChanged`.
   */
  presentRevision(): Promise<StoreRevision>;

  /**
   * Writes the whole store, as it is at one moment, into a file that is there and empty, while it
   * is in use. Missing where the store is not a file of ours.
   */
  readonly copyTo?: (path: string) => Promise<void>;

  /**
   * Hands a message to the consumers at the store's server, and resolves once it is durable there.
   * A message whose id was published within the last two minutes is there once. Missing where the
   * store is no message broker. Throws `unavailable`, `closed`, `incarnationChanged`.
   */
  readonly publish?: (message: PublishedMessage) => Promise<void>;

  /** Finishes accepted calls and releases everything. Later calls throw `closed`. */
  close(): Promise<void>;
}

/** A message beside the keys. */
export interface PublishedMessage {
  /**
   * The words of its subject, from the general to the special, each in the alphabet of segments.
   */
  readonly words: readonly string[];
  readonly id: string;
  readonly value: Uint8Array;
  /** Media type of the value. */
  readonly contentType: string;
}

/** Largest value, in bytes. */
export const VALUE_BYTES_MAX = 256 * 1024;
/** How many changes of a key `history` keeps at least. */
export const HISTORY_PER_KEY = 64;
/** How many changes one call of `past` answers at most. */
export const PAST_CHANGES_MAX = 256;
/** How many entries one page of a listing has at most. */
export const LIST_PAGE_MAX = 1_000;
/** Longest write id, in characters. */
export const WRITE_ID_LENGTH_MAX = 64;

const WRITE_ID = /^[A-Za-z0-9_-]+$/;

/** Throws `valueTooLarge`. */
export function checkValue(key: string, value: Uint8Array): void {
  if (value.byteLength <= VALUE_BYTES_MAX) return;
  throw new StoreError(
    'valueTooLarge',
    `the value for key ${key} has ${value.byteLength} bytes; at most ${VALUE_BYTES_MAX} are stored`,
  );
}

/** Throws `invalidWriteId`. */
export function checkWriteId(writeId: string): void {
  if (writeId.length <= WRITE_ID_LENGTH_MAX && WRITE_ID.test(writeId)) return;
  throw new StoreError(
    'invalidWriteId',
    `write id ${JSON.stringify(writeId)} is not 1 to ${WRITE_ID_LENGTH_MAX} of A-Z a-z 0-9 _ -`,
  );
}

/** Throws `invalidRevision`; `least` is 1 where a write is meant, 0 where a position is. */
export function checkRevision(revision: StoreRevision, least: 0 | 1): void {
  if (Number.isSafeInteger(revision) && revision >= least) return;
  throw new StoreError(
    'invalidRevision',
    `revision ${revision} is not an integer from ${least} to ${Number.MAX_SAFE_INTEGER}`,
  );
}

/** Throws `invalidRevision` for what `past` and the log's `back` cannot take. */
export function checkPage(limit: number, most: number, from: StoreRevision | undefined): void {
  if (from !== undefined) checkRevision(from, 1);
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= most) return;
  throw new StoreError('invalidRevision', `limit ${limit} is not an integer from 1 to ${most}`);
}

/** Throws `invalidKey` and `invalidRevision` for what `list` cannot take as a page. */
export function checkListPage(page: ListPage | undefined): void {
  if (page === undefined) return;
  if (page.after !== undefined && page.after !== '') checkKey(page.after);
  checkPage(page.limit, LIST_PAGE_MAX, undefined);
}

/** How long a store keeps data that it does not need for its own work. */
export interface Retention {
  /**
   * A change of a key under these prefixes stays for `historyAgeMs`, however many follow it; of all
   * other keys the last `HISTORY_PER_KEY` changes stay.
   */
  readonly historyPrefixes: readonly string[];
  readonly historyAgeMs: number;
  /** Entries of the log. */
  readonly logAgeMs: number;
}

const DAY_MS = 86_400_000;

export const RETENTION_DEFAULT: Retention = {
  historyPrefixes: [],
  historyAgeMs: 400 * DAY_MS,
  logAgeMs: 400 * DAY_MS,
};

export type WriteTrace =
  /** The write happened, with this revision; later ones may have followed. */
  | { readonly kind: 'landed'; readonly revision: StoreRevision }
  /** Not among the last changes. It may still land, unless the key has moved past `expected`. */
  | { readonly kind: 'notSeen'; readonly current: GetResult };

/**
 * Looks for a write whose answer was `unknown`, first as the key's last write, then among its last
 * `HISTORY_PER_KEY` changes. Throws what `get` and `history` throw.
 */
export async function findWrite(
  store: StateStore,
  key: string,
  writeId: WriteId,
): Promise<WriteTrace> {
  const current = await store.get(key);
  if (current.writeId === writeId && current.revision !== undefined) {
    return { kind: 'landed', revision: current.revision };
  }
  for (const change of await store.history(key)) {
    if (change.writeId === writeId) return { kind: 'landed', revision: change.revision };
  }
  return { kind: 'notSeen', current };
}
