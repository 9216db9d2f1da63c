/**
 * The way of what happened into the store's log: through a bounded queue, off the path of calls.
 *
 *  A1 A call that changed something is answered once its record is durable, or after
 *     `durableWaitMs`: what was changed is changed, and is not taken back for want of a record.
 *     A change of a host is in the host's own timeline too, with who and which request.
 *  A2 A record is tried again, under one id, until it is stored or `giveUpAfterMs` has passed.
 *  A3 While the program lives, none is lost in silence: what the full queue or the store does not
 *     take stands in the log of this program, whole, with the number lost so far. When it dies
 *     between a change and its record, there is none.
 */
import { type Clock, type Log, type Random, randomId } from '@rackwright/platform';
import { type EntryLog, StoreError } from '@rackwright/store';
import { type AuditEvent, type AuditSink, recordBytes } from './event.ts';
import { RefusalBound } from './refusal-bound.ts';

/** Records that wait for the store. */
const queueMax = 8_192;
/** Records that are with the store at the same time; it writes them as one group. */
const appendsAtOnceMax = 64;
const durableWaitMs = 2_000;
const retryDelayMs = 500;
const giveUpAfterMs = 300_000;
/** How long closing waits for what is queued. */
const closeWaitMs = 3_000;

export interface AuditTrail extends AuditSink {
  /** Records what a caller did whom nobody knows: some in each minute, and how many more. */
  noteStranger(event: AuditEvent): void;
  /** Records what a caller was refused: some of each caller's in a minute, and how many more. */
  noteRefusal(event: AuditEvent): void;
  /** Records what a call has changed; resolves as A1 says, and never rejects. */
  keep(event: AuditEvent): Promise<void>;
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
  readonly event: AuditEvent;
  readonly id: string;
  readonly value: Uint8Array;
  readonly sinceMs: number;
  readonly settled: () => void;
}

/** A trail into the log of this store. */
export function createAuditTrail(deps: TrailDependencies): AuditTrail {
  return new Trail(deps);
}

class Trail implements AuditTrail {
  readonly #deps: TrailDependencies;
  readonly #queue: Waiting[] = [];
  #underWay = 0;
  #lost = 0;
  #closed = false;
  readonly #refusals: RefusalBound;
  #idle: (() => void) | undefined;

  constructor(deps: TrailDependencies) {
    this.#deps = deps;
    this.#refusals = new RefusalBound(deps.clock, (event) => this.note(event));
  }

  note(event: AuditEvent): void {
    this.#add(event, () => undefined);
  }

  noteStranger(event: AuditEvent): void {
    this.#refusals.note('', event);
  }

  noteRefusal(event: AuditEvent): void {
    this.#refusals.note(event.actor, event);
  }

  async keep(event: AuditEvent): Promise<void> {
    await this.#within(durableWaitMs, new Promise<void>((settled) => this.#add(event, settled)));
  }

  lost(): number {
    return this.#lost;
  }

  async close(): Promise<void> {
    this.#refusals.close();
    this.#closed = true;
    if (this.#queue.length + this.#underWay > 0) {
      await this.#within(closeWaitMs, new Promise<void>((resolve) => (this.#idle = resolve)));
    }
    for (const each of this.#queue.splice(0)) this.#lose(each, 'the control plane has ended');
  }

  #add(event: AuditEvent, settled: () => void): void {
    const { clock, random } = this.#deps;
    const sinceMs = clock.nowMs();
    const value = recordBytes(event, sinceMs);
    const waiting = { event, id: randomId(random), value, sinceMs, settled };
    if (this.#closed) this.#lose(waiting, 'the control plane is closing');
    else if (this.#queue.length >= queueMax) this.#lose(waiting, 'too many records wait');
    else {
      this.#queue.push(waiting);
      this.#pump();
    }
  }

  #pump(): void {
    while (this.#underWay < appendsAtOnceMax) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      this.#underWay += 1;
      void this.#store(next).finally(() => {
        this.#underWay -= 1;
        this.#pump();
      });
    }
    if (this.#queue.length + this.#underWay === 0) this.#idle?.();
  }

  /** A2. */
  async #store(waiting: Waiting): Promise<void> {
    const { store, clock } = this.#deps;
    for (;;) {
      const refused = await this.#append(store.log, waiting);
      if (refused === undefined) return waiting.settled();
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
      const reason = error instanceof Error ? error.message : String(error);
      return { reason, isLasting: !(error instanceof StoreError && error.code === 'unavailable') };
    }
  }

  /** A3. */
  #lose({ event, settled }: Waiting, reason: string): void {
    this.#lost += 1;
    const fields = { ...event, lost: this.#lost, reason };
    this.#deps.log.error(fields, 'an audit record was lost; here it stands');
    settled();
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
