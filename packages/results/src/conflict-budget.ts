/**
 * How long conflicts may go on (DESIGN §3): `retryAfter` neither counts as an attempt nor lasts
 * for ever. A step's conflicts share one budget; the first conflict after it counts as failed.
 */

/** From a step's first conflict, milliseconds. */
export const conflictBudgetMs = 15 * 60_000;

export interface Conflict {
  /** Wall time of the step's first conflict; undefined when this is it. */
  readonly firstConflictAtMs?: number | undefined;
  readonly nowMs: number;
  /** What the report asked for, ≥ 0. */
  readonly delayMs: number;
}

export type ConflictDecision =
  /** Ask again, not before `notBeforeMs` (wall time); the last time at the budget's end. */
  | { readonly kind: 'retry'; readonly firstConflictAtMs: number; readonly notBeforeMs: number }
  /** The budget is used up: count the attempt as failed. */
  | { readonly kind: 'spent'; readonly firstConflictAtMs: number };

/** What one more conflict means. */
export function afterConflict({ firstConflictAtMs, nowMs, delayMs }: Conflict): ConflictDecision {
  const first = firstConflictAtMs ?? nowMs;
  const endMs = first + conflictBudgetMs;
  if (nowMs >= endMs) return { kind: 'spent', firstConflictAtMs: first };
  const notBeforeMs = Math.min(nowMs + Math.max(delayMs, 0), endMs);
  return { kind: 'retry', firstConflictAtMs: first, notBeforeMs };
}
