/**
 * Writes audit events to the store's log, through a bounded queue outside the path of calls.
 *
 *  A1 A call that changed something is answered once its record is durable, or after
 *     `durableWaitMs`. The change is not undone when the record is missing. The host's own timeline
 *     also has a change of a host, with the caller and the request.
 *  A2 A write of a record is retried, under one id, until it succeeds or `giveUpAfterMs` has
 *     passed.
 *  A3 No record is lost silently: a record that the full queue or the store rejects is written
 *     whole to this program's own log, with the number of lost records.
 *  A4 A call that may change something is carried out only after the stream has a durable record of
 *     its begin; otherwise it is refused. When this program dies before the call's final record is
 *     stored, the next start finds that, and writes that the outcome is unknown.
 */
import { type AuditRecord, unavailable } from '@rackwright/messages';
import {
  BoundedQueue,
  type Cancel,
  type Clock,
  errorText,
  type Log,
  type Random,
  randomId,
} from '@rackwright/platform';
import { type EntryLog, LOG_PAGE_MAX, StoreError } from '@rackwright/store';
import { type AuditEvent, type AuditSink, entryBytes, failureOutcome, recordOf } from './event.ts';
import { RefusalBound } from './refusal-bound.ts';
import { begunId, unfinishedIn, unfinishedRecord } from './unfinished.ts';

/** Records that are written at once (the store writes them as one group), and that wait. */
const queueLimits = { atOnceMax: 64, waitingMax: 8_192 };
const durableWaitMs = 2_000;
const retryDelayMs = 500;
const giveUpAfterMs = 300_000;
/**
 * Pause between two searches for calls without a final record; also their least age when they are
 * another replica's.
 */
const unfinishedAfterMs = 600_000;
/** How long closing waits for the queue. */
const closeWaitMs = 3_000;

export interface AuditTrail extends AuditSink {
  /** Records a call of an unknown caller: some in each minute, and a count of the rest. */
  noteStranger(event: AuditEvent): void;
  /** Records a refused call: some of each caller in a minute, and a count of the rest. */
  noteRefusal(event: AuditEvent): void;
  /** Records what a call has changed; resolves as in A1, and never rejects. */
  keep(event: AuditEvent, id?: string): Promise<void>;
  /**
   * Records the event once, even if it is reported again after a crash: the newest entries are
   * checked.
   */
  keepOnce(event: AuditEvent, id: string): Promise<void>;
  /** As in `AuditSink`; `id`: of a call that began under this id. */
  note(event: AuditEvent, id?: string): void;
  /**
   * A call is about to be carried out (A4). Resolves with the id for the final record by `keep` or
   * `note`. Rejects with `ApiFailure`.
   */
  begin(event: Omit<AuditEvent, 'outcome'>): Promise<string>;
  /**
   * Searches for calls without a final record, now and at intervals. `isOnly`: no other replica
   * writes.
   */
  start(isOnly: boolean): void;
  /** Records that were lost since the start (A3). */
  lost(): number;
  /** Stores as much of the queue as possible; later records are lost. */
  close(): Promise<void>;
}

export interface TrailDependencies {
  readonly store: { readonly log: EntryLog };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

interface WaitingRecord {
  readonly record: AuditRecord;
  readonly id: string;
  readonly value: Uint8Array;
  readonly sinceMs: number;
  readonly settled: (isStored: boolean) => void;
}

/** A trail into the log of this store. */
export function createAuditTrail(deps: TrailDependencies): AuditTrail {
  return new Trail(deps);
}

const timeDigits = 9;

/** Ids grow with time, so that a store that sorts them writes new ones next to each other. */
function newId(clock: Clock, random: Random): string {
  return `${clock.nowMs().toString(36).padStart(timeDigits, '0')}${randomId(random)}`;
}

class Trail implements AuditTrail {
  readonly #deps: TrailDependencies;
  readonly #queue: BoundedQueue<WaitingRecord>;
  #lost = 0;
  #closed = false;
  readonly #refusals: RefusalBound;
  #idle: (() => void) | undefined;
  /** Calls of this process whose record is not stored yet. */
  readonly #begun = new Set<string>();
  #cancelCheck: Cancel = () => {};

  constructor(deps: TrailDependencies) {
    this.#deps = deps;
    const store = (waiting: WaitingRecord): Promise<void> => this.#store(waiting);
    this.#queue = new BoundedQueue(queueLimits, store, () => this.#idle?.());
    this.#refusals = new RefusalBound(deps.clock, (event) => this.note(event));
  }

  note(event: AuditEvent, id?: string): void {
    this.#add(event, () => undefined, id);
  }

  async begin(event: Omit<AuditEvent, 'outcome'>): Promise<string> {
    const { clock, random } = this.#deps;
    const id = newId(clock, random);
    const record = recordOf({ ...event, outcome: 'BEGUN' }, clock.nowMs());
    this.#begun.add(id);
    let isStored = false;
    const stored = new Promise<void>((resolve) => {
      const settled = (is: boolean): void => {
        isStored = is;
        resolve();
      };
      const value = entryBytes(record, { begun: true });
      this.#enqueue({ record, id: begunId(id), value, sinceMs: clock.nowMs(), settled });
    });
    await this.#within(durableWaitMs, stored);
    if (isStored) return id;
    const text = 'The audit stream does not take what is asked: nothing was done. Try again.';
    const refusal = unavailable('AUDIT_UNAVAILABLE', text, retryDelayMs);
    // The write may still succeed later.
    this.note({ ...event, ...failureOutcome(refusal) }, id);
    throw refusal;
  }

  async keepOnce(event: AuditEvent, id: string): Promise<void> {
    const { entries } = await this.#deps.store.log.back(LOG_PAGE_MAX);
    if (!entries.some((entry) => entry.id === id)) await this.keep(event, id);
  }

  start(isOnly: boolean): void {
    const { clock, log } = this.#deps;
    const again = (): void => {
      if (!this.#closed)
        this.#cancelCheck = clock.after(unfinishedAfterMs, () => this.start(isOnly));
    };
    this.#findUnfinished(isOnly)
      .catch((error: unknown) => {
        log.warn(
          {},
          'calls without a final record could not be searched; tried again later',
          error,
        );
      })
      .finally(again);
  }

  async #findUnfinished(isOnly: boolean): Promise<void> {
    const { clock, store, log } = this.#deps;
    const beforeMs = isOnly ? Number.POSITIVE_INFINITY : clock.nowMs() - unfinishedAfterMs;
    const { unfinished, isCut } = await unfinishedIn(store.log, beforeMs);
    if (isCut) {
      log.warn(
        {},
        'the search for calls without a final record was cut: too many calls in an hour',
      );
    }
    for (const { id, record } of unfinished) {
      if (this.#begun.has(id)) continue;
      const nowMs = clock.nowMs();
      const line = unfinishedRecord(record, nowMs);
      const value = entryBytes(line);
      this.#enqueue({ record: line, id, value, sinceMs: nowMs, settled: () => undefined });
    }
  }

  noteStranger(event: AuditEvent): void {
    this.#refusals.note('', event);
  }

  noteRefusal(event: AuditEvent): void {
    this.#refusals.note(event.actor, event);
  }

  async keep(event: AuditEvent, id?: string): Promise<void> {
    const stored = new Promise<void>((resolve) => this.#add(event, () => resolve(), id));
    await this.#within(durableWaitMs, stored);
  }

  lost(): number {
    return this.#lost;
  }

  async close(): Promise<void> {
    this.#refusals.close();
    this.#closed = true;
    this.#cancelCheck();
    if (this.#queue.size > 0) {
      await this.#within(closeWaitMs, new Promise<void>((resolve) => (this.#idle = resolve)));
    }
    for (const each of this.#queue.clear()) this.#lose(each, 'the control plane has ended');
  }

  #add(
    event: AuditEvent,
    settled: () => void,
    id = newId(this.#deps.clock, this.#deps.random),
  ): void {
    const sinceMs = this.#deps.clock.nowMs();
    const record = recordOf(event, sinceMs);
    const over = (): void => {
      this.#begun.delete(id);
      settled();
    };
    const value = entryBytes(record);
    this.#enqueue({ record, id, value, sinceMs, settled: over });
  }

  #enqueue(waiting: WaitingRecord): void {
    if (this.#closed) this.#lose(waiting, 'the control plane is closing');
    else if (!this.#queue.add(waiting)) this.#lose(waiting, 'too many records wait');
  }

  /** A2. */
  async #store(waiting: WaitingRecord): Promise<void> {
    const { store, clock } = this.#deps;
    for (;;) {
      const refused = await this.#append(store.log, waiting);
      if (refused === undefined) return waiting.settled(true);
      const isOver = refused.isLasting || clock.nowMs() - waiting.sinceMs >= giveUpAfterMs;
      if (isOver || this.#closed) return this.#lose(waiting, refused.reason);
      await new Promise<void>((resolve) => clock.after(retryDelayMs, resolve));
    }
  }

  /** Why the record could not be stored; undefined when it is stored. */
  async #append(log: EntryLog, { id, value }: WaitingRecord) {
    try {
      const result = await log.append(id, value);
      return result.kind === 'ok' ? undefined : { reason: result.reason, isLasting: false };
    } catch (error) {
      const reason = errorText(error);
      return { reason, isLasting: !(error instanceof StoreError && error.code === 'unavailable') };
    }
  }

  /** A3. */
  #lose({ record, settled }: WaitingRecord, reason: string): void {
    this.#lost += 1;
    const { kind, actor, action, resource, outcome, message, requestId, operationId, peer } =
      record;
    const entry = { kind, actor, action, resource, outcome, message, requestId, operationId, peer };
    const fields = { ...entry, lost: this.#lost, reason };
    this.#deps.log.error(fields, 'an audit record was lost; this line has it');
    settled(false);
  }

  async #within(waitMs: number, done: Promise<void>): Promise<void> {
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#deps.clock.after(waitMs, resolve);
    });
    await Promise.race([done, late]);
    cancel();
  }
}
