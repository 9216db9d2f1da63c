/** The deadline of an operation as a signal, for the work before a runner has it. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { agent } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import type { OperationContext } from '../session/index.ts';

/** Longest timer; a later deadline is another's to watch. */
const timerMsMax = 24 * 3_600_000;

export interface TimeLimit {
  /** Aborted with the operation, and when its time is over. */
  readonly signal: AbortSignal;
  isOver(): boolean;
  /** It is watched no more. */
  end(): void;
}

export function timeLimit(
  clock: Clock,
  { remainingMs, signal }: Pick<OperationContext, 'remainingMs' | 'signal'>,
): TimeLimit {
  const late = new AbortController();
  const delayMs = Math.max(0, Math.min(remainingMs(), timerMsMax));
  const end = clock.after(delayMs, () => late.abort());
  return {
    signal: AbortSignal.any([signal, late.signal]),
    isOver: () => late.signal.aborted,
    end,
  };
}

/**
 * For a step that may have to wait for a slot: the wait does not count as its own time. Its two
 * times are in `RunStep.turn_timeout`; without, its deadline alone counts.
 */
export class SlotLimit implements TimeLimit {
  /** Aborted with the operation, and when the time of the present phase is over. */
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #operationMs: () => number;
  readonly #ownMs: number;
  readonly #late = new AbortController();
  #phase: 'waiting' | 'own';
  /** When its own time is over, of the suspend-aware clock; infinite: with its operation. */
  #dueAtMs = Number.POSITIVE_INFINITY;
  #cancel: Cancel = () => {};

  constructor(
    clock: Clock,
    { turnTimeout }: Pick<agent.RunStep, 'turnTimeout'>,
    { remainingMs, signal }: Pick<OperationContext, 'remainingMs' | 'signal'>,
  ) {
    this.#clock = clock;
    this.#operationMs = remainingMs;
    this.#ownMs = turnTimeout === undefined ? 0 : durationMs(turnTimeout);
    this.#phase = turnTimeout === undefined ? 'own' : 'waiting';
    this.signal = AbortSignal.any([signal, this.#late.signal]);
    this.#arm();
  }

  /** The step has its slot, and its own time begins. */
  begin(): void {
    if (this.#phase === 'own' || this.isOver()) return;
    this.#phase = 'own';
    this.#dueAtMs = this.#clock.suspendAwareMs() + this.#ownMs;
    this.#arm();
  }

  /** True as well without a time of its own. */
  hadItsSlot(): boolean {
    return this.#phase === 'own';
  }

  /** The rest of its own time; before it has its slot, of the wait for it. */
  remainingMs(): number {
    const leftMs = this.#operationMs();
    switch (this.#phase) {
      case 'waiting':
        return leftMs - this.#ownMs;
      case 'own':
        return Math.min(leftMs, this.#dueAtMs - this.#clock.suspendAwareMs());
    }
  }

  isOver(): boolean {
    return this.#late.signal.aborted;
  }

  end(): void {
    this.#cancel();
  }

  #arm(): void {
    this.#cancel();
    const delayMs = Math.max(0, Math.min(this.remainingMs(), timerMsMax));
    this.#cancel = this.#clock.after(delayMs, () => {
      if (this.remainingMs() <= 0) this.#late.abort();
      else this.#arm();
    });
  }
}
