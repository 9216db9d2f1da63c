/**
 * The way of what happened into the store's log: through a bounded queue, off the path of calls.
 *
 *  A1 A call that changed something is answered once its record is durable, or after
 *     `durableWaitMs`: what was changed is changed, and is not taken back for want of a record.
 *     A change of a host is in the host's own timeline too, with who and which request.
 *  A2 A record is tried again, under one id, until it is stored or `giveUpAfterMs` has passed.
 *  A3 None is lost in silence: what the full queue or the store does not take stands in the log of
 *     this program, whole, with the number lost so far.
 *  A4 A call that may change something stands in the stream as begun, durably, before it is carried
 *     out; otherwise it is refused. When this program dies before the call's record is stored, that
 *     is found at the next start, and the record says that nobody knows what came of it.
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

/** Records that are with the store at once (it writes them as one group), and that wait. */
const queueLimits = { atOnceMax: 64, waitingMax: 8_192 };
const durableWaitMs = 2_000;
const retryDelayMs = 500;
const giveUpAfterMs = 300_000;
/** Between two looks for calls whose end is missing; so old must those of other replicas be. */
const unfinishedAfterMs = 600_000;
/** How long closing waits for what is queued. */
const closeWaitMs = 3_000;

export interface AuditTrail extends AuditSink {
  /** Records what a caller did whom nobody knows: some in each minute, and how many more. */
  noteStranger(event: AuditEvent): void;
  /** Records what a caller was refused: some of each caller's in a minute, and how many more. */
  noteRefusal(event: AuditEvent): void;
  /** Records what a call has changed; resolves as A1 says, and never rejects. */
  keep(event: AuditEvent, id?: string): Promise<void>;
  /** Records it once, though it is told again after a crash: the newest entries are looked at. */
  keepOnce(event: AuditEvent, id: string): Promise<void>;
  /** As of `AuditSink`; of a call that was begun under this id. */
  note(event: AuditEvent, id?: string): void;
  /**
   * A call is about to be carried out (A4). Resolves with the id under which `keep` or `note` must
   * tell its end. Rejects with `ApiFailure`.
   */
  begin(event: Omit<AuditEvent, 'outcome'>): Promise<string>;
  /** Looks for calls whose end is missing, now and later. `isOnly`: no other replica writes. */
  start(isOnly: boolean): void;
  /** Records that were lost since the start (A3). */
  lost(): number;
  /** Stores what is queued, as far as it goes; later records are lost. */
  close(): Promise<void>;
}

export interface TrailDependencies {
  readonly store: { readonly log: EntryLog };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

interface Waiting {
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

/** Ids grow with time, so that a store which keeps them in order writes next to the last ones. */
function newId(clock: Clock, random: Random): string {
  return `${clock.nowMs().toString(36).padStart(timeDigits, '0')}${randomId(random)}`;
}

class Trail implements AuditTrail {
  readonly #deps: TrailDependencies;
  readonly #queue: BoundedQueue<Waiting>;
  #lost = 0;
  #closed = false;
  readonly #refusals: RefusalBound;
  #idle: (() => void) | undefined;
  /** Calls of this process whose record is not stored yet. */
  readonly #begun = new Set<string>();
  #cancelLook: Cancel = () => {};

  constructor(deps: TrailDependencies) {
    this.#deps = deps;
    const store = (waiting: Waiting): Promise<void> => this.#store(waiting);
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
    const words = 'The audit stream does not take what is asked: nothing was done. Try again.';
    const refusal = unavailable('AUDIT_UNAVAILABLE', words, retryDelayMs);
    // It may come there yet.
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
        this.#cancelLook = clock.after(unfinishedAfterMs, () => this.start(isOnly));
    };
    this.#lookForUnfinished(isOnly)
      .catch((error: unknown) => {
        log.warn({}, 'calls whose end is missing: looked for again later', error);
      })
      .finally(again);
  }

  async #lookForUnfinished(isOnly: boolean): Promise<void> {
    const { clock, store, log } = this.#deps;
    const beforeMs = isOnly ? Number.POSITIVE_INFINITY : clock.nowMs() - unfinishedAfterMs;
    const { unfinished, isCut } = await unfinishedIn(store.log, beforeMs);
    if (isCut) {
      log.warn({}, 'more calls in an hour than are looked through for those whose end is missing');
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
    this.#cancelLook();
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

  #enqueue(waiting: Waiting): void {
    if (this.#closed) this.#lose(waiting, 'the control plane is closing');
    else if (!this.#queue.add(waiting)) this.#lose(waiting, 'too many records wait');
  }

  /** A2. */
  async #store(waiting: Waiting): Promise<void> {
    const { store, clock } = this.#deps;
    for (;;) {
      const refused = await this.#append(store.log, waiting);
      if (refused === undefined) return waiting.settled(true);
      const isOver = refused.isLasting || clock.nowMs() - waiting.sinceMs >= giveUpAfterMs;
      if (isOver || this.#closed) return this.#lose(waiting, refused.reason);
      await new Promise<void>((resolve) => clock.after(retryDelayMs, resolve));
    }
  }

  /** What keeps the record out of the store; undefined when it is there. */
  async #append(log: EntryLog, { id, value }: Waiting) {
    try {
      const result = await log.append(id, value);
      return result.kind === 'ok' ? undefined : { reason: result.reason, isLasting: false };
    } catch (error) {
      const reason = errorText(error);
      return { reason, isLasting: !(error instanceof StoreError && error.code === 'unavailable') };
    }
  }

  /** A3. */
  #lose({ record, settled }: Waiting, reason: string): void {
    this.#lost += 1;
    const { kind, actor, action, resource, outcome, message, requestId, operationId, peer } =
      record;
    const told = { kind, actor, action, resource, outcome, message, requestId, operationId, peer };
    const fields = { ...told, lost: this.#lost, reason };
    this.#deps.log.error(fields, 'an audit record was lost; here it stands');
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
