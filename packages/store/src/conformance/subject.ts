/**
 * The conformance suite's needs of a driver: two handles, and ways to kill it and to read the
 * result. Drivers implement `StoreUnderTest`; cases use nothing else.
 */
import assert from 'node:assert/strict';
import type { Change, Retention, StateStore, WatchEvent, WriteResult } from '../contract.ts';

/**
 * The prefix that every handle under test is opened with; only the cases about age use keys below
 * it.
 */
export const TESTED_PREFIX = 'aged';

/** The retention of a driver whose time passes as `pass` says. */
export function testedRetention(ageMs: number): Retention {
  return { historyPrefixes: [TESTED_PREFIX], historyAgeMs: ageMs, logAgeMs: ageMs };
}

/** The age in tests whose clock is moved by hand. */
export const TESTED_AGE_MS = 400 * 86_400_000;

/** A clock that is moved by hand. */
export class HandClock {
  #nowMs = 1_700_000_000_000;

  nowMs(): number {
    return this.#nowMs;
  }

  move(byMs: number): void {
    this.#nowMs += byMs;
  }
}

export interface StoreUnderTest {
  /** Two handles of one store, as two control planes would have; one and the same handle where
   * the driver admits only one. Replaced by `crash`. */
  first: StateStore;
  second: StateStore;
  /** SIGKILLs everything that holds the store, without warning, and opens it again. */
  crash(): Promise<void>;
  /** Closes every handle and opens the store as restored; later calls open it as usual. */
  restore(): Promise<void>;
  /** Waits for real. */
  wait(delayMs: number): Promise<void>;
  /** Lets everything that was written before grow older than the retention of the handles. */
  growOld(): Promise<void>;
  /** Closes everything and removes its files. */
  dispose(): Promise<void>;
}

/** Figures by which one driver's suite differs from another's. */
export interface SuiteLimits {
  /** How often two writers race for one revision; 500 at least show a rare overlap. */
  readonly racesMin: number;
  /** How long a watcher may take to show an acknowledged write, milliseconds. */
  readonly patienceMs: number;
  /** Size of the fill in cases that write much. */
  readonly manyWrites: number;
  /** For random calls; without it each run makes others, and makes a failing one small. */
  readonly seed?: number;
}

export const USUAL_LIMITS: SuiteLimits = { racesMin: 500, patienceMs: 10_000, manyWrites: 400 };

/** A case's requirements of its store. */
export interface CaseNeeds {
  /** Calls `growOld`: where time passes for real, only such a case may have a short retention. */
  readonly growsOld?: true;
}

export interface ConformanceCase extends CaseNeeds {
  /** A sentence that follows on the driver's name. */
  readonly name: string;
  run(subject: StoreUnderTest, limits: SuiteLimits): Promise<void>;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function text(value: Uint8Array): string {
  return new TextDecoder().decode(value);
}

/** The revision of a write that must have succeeded. */
export function revisionOf(result: WriteResult): number {
  assert.equal(result.kind, 'ok', `expected ok, got ${JSON.stringify(result)}`);
  return result.kind === 'ok' ? result.revision : 0;
}

/** A value that must be there. */
export async function valueOf(store: StateStore, key: string): Promise<string> {
  const result = await store.get(key);
  assert.equal(result.kind, 'found', `key ${key} should be there`);
  return result.kind === 'found' ? text(result.value) : '';
}

/** A change in one line, for comparing sequences. */
export function line(event: WatchEvent | Change): string {
  switch (event.kind) {
    case 'put':
      return `put ${event.key} ${text(event.value)} @${event.revision}`;
    case 'delete':
      return `delete ${event.key} @${event.revision}`;
    case 'compacted':
      return `compacted ${event.reason}`;
  }
}

/**
 * Takes events until one has revision `until` or more, or the watch ends. Fails when that takes
 * longer than the limit.
 */
export async function eventsUntil(
  events: AsyncIterable<WatchEvent>,
  until: number,
  subject: StoreUnderTest,
  limits: SuiteLimits,
): Promise<WatchEvent[]> {
  const seen: WatchEvent[] = [];
  const iterator = events[Symbol.asyncIterator]();
  const late = subject.wait(limits.patienceMs).then(() => 'late' as const);
  for (;;) {
    const next = await Promise.race([iterator.next(), late]);
    if (next === 'late') {
      assert.fail(`the watch did not show revision ${until}; it showed ${seen.length} events`);
    }
    if (next.done === true) return seen;
    seen.push(next.value);
    if (next.value.kind === 'compacted' || next.value.revision >= until) {
      await iterator.return?.();
      return seen;
    }
  }
}

/** The events without redelivered ones; fails when a redelivery goes back out of order. */
export function withoutRepeats(events: readonly WatchEvent[]): WatchEvent[] {
  const kept = new Map<number, WatchEvent>();
  let before = 0;
  for (const event of events) {
    if (event.kind === 'compacted') continue;
    const known = kept.has(event.revision);
    assert.ok(
      event.revision > before || known,
      `revision ${event.revision} came after ${before} and was not a repetition`,
    );
    kept.set(event.revision, event);
    before = event.revision;
  }
  return [...kept.values()];
}
