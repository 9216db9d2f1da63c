/**
 * Whether the shown data is live: the state of the page's one connection. Pure.
 *
 * Invariants:
 * 1. Data is stale from the control plane's last message on, not from the moment at which its
 *    silence was noticed.
 * 2. Attempts never end, and are never closer together than the table of pauses says.
 */

/** Pauses before attempts, milliseconds; the last one repeats. */
export const pausesMs = [500, 1_000, 2_000, 4_000, 8_000] as const;
/** Silence after which the page checks whether the control plane is reachable. */
export const quietMs = 8_000;
/** The timeout of that check. */
export const answerMs = 5_000;

export type ConnectionState =
  /** No message has arrived yet. */
  | { readonly kind: 'opening' }
  | { readonly kind: 'live'; readonly heardMs: number }
  | {
      readonly kind: 'lost';
      /** The time of the last message; undefined: none so far. */
      readonly heardMs: number | undefined;
      /** Attempts that have failed. */
      readonly attempts: number;
      readonly retryAtMs: number;
    }
  /** The page is hidden: it sends no request until it is visible. */
  | { readonly kind: 'resting'; readonly heardMs: number | undefined };

export type ConnectionEvent = 'heard' | 'failed' | 'hidden' | 'shown';

/** The connection after an event at `nowMs`. */
export function connectionAfter(
  before: ConnectionState,
  event: ConnectionEvent,
  nowMs: number,
): ConnectionState {
  const heardMs = before.kind === 'opening' ? undefined : before.heardMs;
  switch (event) {
    case 'heard':
      return { kind: 'live', heardMs: nowMs };
    case 'failed': {
      const attempts = before.kind === 'lost' ? before.attempts + 1 : 1;
      return { kind: 'lost', heardMs, attempts, retryAtMs: nowMs + pauseOf(attempts) };
    }
    case 'hidden':
      return { kind: 'resting', heardMs };
    case 'shown':
      return before.kind === 'resting' ? { kind: 'opening' } : before;
  }
}

function pauseOf(attempts: number): number {
  return pausesMs[Math.min(attempts, pausesMs.length) - 1] ?? pausesMs[0];
}
