/** Empties an event log, the same way for each protocol. */
import type { Clock } from '@rackwright/platform';
import {
  type BmcAssertion,
  type BmcFailed,
  type BmcResult,
  type BmcTransient,
  failed,
  ok,
} from './driver.ts';
import { type ReadBackTimings, readUntil } from './read-back.ts';

export interface LogCalls {
  /** The number of its entries. */
  entries(): Promise<BmcResult<number>>;
  clear(): Promise<BmcResult<unknown>>;
  /** After such an answer to `clear` only the read-back can tell. */
  isOpen(refusal: BmcFailed | BmcTransient): boolean;
}

/** Entries that a log may still have: many BMCs log the clearing itself. */
const clearedEntriesMax = 1;

/** Clears a log that has entries, and answers `ok` only when they have been seen to be gone. */
export async function clearLog(
  { entries, clear, isOpen }: LogCalls,
  clock: Clock,
  readBack: ReadBackTimings,
  signal: AbortSignal | undefined,
): Promise<BmcResult<BmcAssertion>> {
  const before = await entries();
  if (before.kind !== 'ok') return before;
  if (before.value === 0) return ok({ changed: false, notes: [] });
  const cleared = await clear();
  if (cleared.kind !== 'ok' && !isOpen(cleared)) return cleared;
  const isCleared = (count: number): boolean => count <= clearedEntriesMax;
  const after = await readUntil(clock, readBack, entries, isCleared, signal);
  if (after.kind !== 'ok') return after;
  if (isCleared(after.value)) return ok({ changed: true, notes: [] });
  if (cleared.kind !== 'ok') return cleared;
  const text = `it has ${after.value} entries, ${before.value} before`;
  return failed('notApplied', 'the BMC accepted to clear its event log and did not', text);
}
