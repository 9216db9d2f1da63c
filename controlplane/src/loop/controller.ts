/**
 * One reconcile loop: passes over things by their keys. Each pass compares the desired with the
 * observed state and acts on the difference. Hosts, pools, workflows, batches and discovery use it.
 *
 * Invariants:
 * 1. One pass at a time over a thing; a new caller waits for earlier ones.
 * 2. Several wake-ups of a thing before its next pass are merged into one, for each reason.
 * 3. The number of woken passes at once is bounded, in the order of waking: a thing that is woken
 *    repeatedly goes behind all others, a pass over everything behind them (`lanes.ts`). A pass
 *    with a waiting caller does not queue, and other work of the process runs in between.
 * 4. A failed pass is repeated after a pause, which doubles up to a bound, or when woken.
 * 5. Nothing begins by itself after `stop`.
 *
 * Must not: keep anything that a pass would not find in the store. A lost wake-up costs only time.
 */
import type { Clock, Log } from '@rackwright/platform';
import { backoffDelayMs } from '@rackwright/results';
import { Alarms } from './alarms.ts';
import { type Lane, Lanes } from './lanes.ts';
import { OneByOne } from './one-by-one.ts';
import { resyncLater } from './resync.ts';

/** The most woken passes at once. */
const wokenPassesMax = 256;
/** Passes that begin before other work runs. */
const passesPerYield = 16;
/** The longest pause after failures, as a multiple of the first one. */
const longestPauses = 16;

export interface ControllerParts<Thing, Reason extends string> {
  readonly clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly log: Pick<Log, 'warn'>;
  /** Pause after a first failure. */
  readonly retryDelayMs: number;
  readonly keyOf: (thing: Thing) => string;
  /** Log fields that name the thing. */
  readonly fieldsOf: (thing: Thing) => Readonly<Record<string, string>>;
  /** Called before a pass begins: whether there is anything to do. Missing: always. */
  readonly isDue?: (thing: Thing, reason: Reason) => boolean;
  /** Rejects when the pass has to be repeated. */
  readonly pass: (thing: Thing, reason: Reason) => Promise<unknown>;
}

/** The work of a controller. */
export interface Passes {
  readonly waiting: number;
  readonly underWay: number;
}

interface WakeUp<Thing, Reason> {
  /** From key and reason. */
  readonly id: string;
  readonly thing: Thing;
  readonly reason: Reason;
}

export class Controller<Thing = string, Reason extends string = 'due'> implements Passes {
  readonly #parts: ControllerParts<Thing, Reason>;
  readonly #passes = new OneByOne();
  readonly #alarms: Alarms;
  /** Wake-ups that wait for a free pass. */
  readonly #waiting = new Lanes<WakeUp<Thing, Reason>>();
  /** Wake-ups that wait for earlier passes over the same thing. */
  readonly #admitted = new Set<string>();
  #passing = 0;
  /** Passes begun since other work has run. */
  #begun = 0;
  /** Failures in a row, by key. */
  readonly #failures = new Map<string, number>();
  readonly #stopping = new AbortController();

  constructor(parts: ControllerParts<Thing, Reason>) {
    this.#parts = parts;
    this.#alarms = new Alarms(parts.clock);
  }

  /** Wake-ups that wait for their pass to begin. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Passes that have begun, including those that wait for another one of the same thing. */
  get underWay(): number {
    return this.#passing;
  }

  /** Aborts with `stop`. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Runs `work` in the order of the thing's passes; for callers that wait for the result. */
  take<T>(thing: Thing, work: () => Promise<T>): Promise<T> {
    return this.#passes.take(this.#parts.keyOf(thing), work);
  }

  /** Requests a pass soon; `later`: behind all that are to come soon. */
  wake(thing: Thing, reason: Reason, lane: Lane = 'soon'): void {
    const id = `${reason} ${this.#parts.keyOf(thing)}`;
    if (this.signal.aborted || this.#admitted.has(id)) return;
    this.#waiting.add(id, { id, thing, reason }, lane);
    this.#admit();
  }

  /** Requests a pass at this wall time, replacing an earlier time; undefined: none. */
  wakeAt(thing: Thing, atMs: number | undefined, reason: Reason): void {
    this.#alarms.set(this.#parts.keyOf(thing), atMs, () => this.wake(thing, reason));
  }

  /** The thing is gone: cancels its pass. */
  forget(thing: Thing): void {
    const key = this.#parts.keyOf(thing);
    this.#alarms.clear(key);
    this.#failures.delete(key);
  }

  /** Calls `check` again and again after this pause, to find what a lost wake-up has missed. */
  resync(resyncIntervalMs: number, check: () => Promise<void> | void): void {
    resyncLater({ ...this.#parts, resyncIntervalMs }, check, this.signal);
  }

  stop(): void {
    this.#stopping.abort();
    this.#alarms.stop();
    this.#waiting.clear();
  }

  #admit(): void {
    while (this.#passing < wokenPassesMax && this.#begun < passesPerYield) {
      const wakeUp = this.#waiting.take();
      if (wakeUp === undefined) return;
      this.#admitted.add(wakeUp.id);
      this.#passing += 1;
      this.#begun += 1;
      if (this.#begun === passesPerYield) this.#pause();
      void this.take(wakeUp.thing, () => this.#pass(wakeUp));
    }
  }

  /** (3) */
  #pause(): void {
    this.#parts.clock.after(0, () => {
      this.#begun = 0;
      this.#admit();
    });
  }

  async #pass({ id, thing, reason }: WakeUp<Thing, Reason>): Promise<void> {
    this.#admitted.delete(id);
    const { keyOf, isDue, pass } = this.#parts;
    const key = keyOf(thing);
    try {
      // (5) It may have waited for another pass until now.
      if (this.signal.aborted || isDue?.(thing, reason) === false) return;
      this.#alarms.clear(key);
      await pass(thing, reason);
      this.#failures.delete(key);
    } catch (error) {
      this.#failed(thing, reason, error);
    } finally {
      this.#passing -= 1;
      this.#admit();
    }
  }

  #failed(thing: Thing, reason: Reason, error: unknown): void {
    const { clock, log, retryDelayMs: firstMs, keyOf, fieldsOf } = this.#parts;
    log.warn(fieldsOf(thing), 'a pass failed', error);
    const key = keyOf(thing);
    const attempt = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, attempt);
    const pauseMs = backoffDelayMs({ attempt, firstMs, delayMsMax: longestPauses * firstMs, key });
    this.wakeAt(thing, clock.nowMs() + pauseMs, reason);
  }
}
