/**
 * Repeats calls that only read, while a server or its store is away for a moment.
 *
 * Invariants:
 * 1. Only a method that the API declares free of side effects (`NO_SIDE_EFFECTS`) is repeated: for
 *    any other nobody knows whether the first call was carried out.
 * 2. Only `unavailable` is repeated: any other failure would be the same again.
 * 3. Tries are bounded, in number and by the call's deadline; the caller gets the last failure.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt';
import { ApiFailure } from '@rackwright/messages';
import { type Clock, pause, type Random } from '@rackwright/platform';

/** The parts of a pause between tries. */
export interface Repeats {
  readonly clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly random: Pick<Random, 'fraction'>;
  /** Called before each pause. */
  readonly onRepeat?: (failure: ApiFailure, pauseMs: number) => void;
}

/** The call options that decide whether and how long it is repeated. */
interface Patience {
  readonly repeats?: Repeats;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** All tries together; pauses of half to all of 250, 500, 1000, 2000 and 2000 ms lie between. */
export const triesMax = 6;
const firstPauseMs = 250;
const pauseMsMax = 2_000;

/** Makes the call, and again where the invariants allow it. */
export async function callWithRepeats<T>(
  method: DescMethod,
  { repeats, deadlineMs, signal }: Patience,
  call: () => Promise<T>,
): Promise<T> {
  if (repeats === undefined || method.idempotency !== Level.NO_SIDE_EFFECTS) return call();
  const { clock, random, onRepeat } = repeats;
  for (let failures = 1; ; failures += 1) {
    try {
      return await call();
    } catch (error) {
      const pauseMs = pauseBefore(error, failures, random.fraction());
      if (!(error instanceof ApiFailure) || pauseMs === undefined) throw error;
      if (deadlineMs !== undefined && clock.nowMs() + pauseMs >= deadlineMs) throw error;
      onRepeat?.(error, pauseMs);
      await pause(clock, pauseMs, signal);
    }
  }
}

/** The delay after so many failures; undefined: that was the last try. Pure. */
export function pauseBefore(
  error: unknown,
  failures: number,
  fraction: number,
): number | undefined {
  if (!(error instanceof ApiFailure) || error.error.kind !== 'unavailable') return undefined;
  if (failures >= triesMax) return undefined;
  const { retryAfterMs = 0 } = error.error;
  // A server that asks for a longer pause is overloaded: a person decides.
  if (retryAfterMs > pauseMsMax) return undefined;
  const most = Math.min(firstPauseMs * 2 ** (failures - 1), pauseMsMax);
  return Math.max(retryAfterMs, Math.round((most * (1 + fraction)) / 2));
}
