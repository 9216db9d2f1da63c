/**
 * Boots that were served and never arrived: a host got the script that starts the runner, and no
 * runner has shown its token. Its firmware, its network card or its memory is then at fault.
 *
 * Bounded: beyond `bootsMax` the oldest is given up uncounted.
 */
import type { OperationId } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';

/** Boots that are waited for at once. */
const bootsMax = 4_096;
/** How long a runner may take from its script to its Hello, milliseconds. */
export const arrivesWithinMs = 900_000;

export interface BootsServedParts {
  readonly clock: Pick<Clock, 'after' | 'suspendAwareMs'>;
  /** The duration, seconds. */
  readonly onArrived: (seconds: number) => void;
  readonly onLost: () => void;
}

export class BootsServed {
  readonly #parts: BootsServedParts;
  readonly #waiting = new Map<OperationId, { readonly sinceMs: number; readonly cancel: Cancel }>();

  constructor(parts: BootsServedParts) {
    this.#parts = parts;
  }

  /** A script was given out; a firmware that asks again is waited for from the first time on. */
  noteServed(operationId: OperationId): void {
    if (this.#waiting.has(operationId)) return;
    const { clock, onLost } = this.#parts;
    const cancel = clock.after(arrivesWithinMs, () => {
      if (this.#waiting.delete(operationId)) onLost();
    });
    this.#waiting.set(operationId, { sinceMs: clock.suspendAwareMs(), cancel });
    const oldest = this.#waiting.keys().next().value;
    if (this.#waiting.size > bootsMax && oldest !== undefined) this.#drop(oldest);
  }

  /** A runner has shown the token of this operation. */
  noteArrived(operationId: OperationId): void {
    const waiting = this.#waiting.get(operationId);
    if (waiting === undefined) return;
    this.#drop(operationId);
    this.#parts.onArrived((this.#parts.clock.suspendAwareMs() - waiting.sinceMs) / 1_000);
  }

  stop(): void {
    for (const operationId of [...this.#waiting.keys()]) this.#drop(operationId);
  }

  #drop(operationId: OperationId): void {
    this.#waiting.get(operationId)?.cancel();
    this.#waiting.delete(operationId);
  }
}
