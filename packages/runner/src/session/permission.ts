/**
 * Asks the agent whether destructive work may begin now, a while after it was ordered.
 *
 * Invariants:
 * 1. Only a yes to the last question counts, and only for the rest of the lease, at most `freshMs`,
 *    measured from the question (R11): a late answer of a slow link permits nothing.
 * 2. Silence, a lost connection and a reason to wait are all no; the question is repeated.
 * 3. Concurrent questions are asked one after another: each has an answer of its own.
 * 4. An agent that answers no such question has given its permission with the order, as before
 *    (R8).
 */
import type { OperationId } from '@rackwright/messages';
import { type Clock, whenSettled } from '@rackwright/platform';

/** An agent's answer to one question. */
export type BeginAnswer =
  /** For so long from its asking, milliseconds; unset where no lease limits it. */
  | { readonly kind: 'granted'; readonly forMs?: number }
  | { readonly kind: 'wait'; readonly reason: string }
  | { readonly kind: 'over'; readonly reason: string };

/** The end of a question. */
export type BeginOutcome =
  | { readonly kind: 'granted' | 'aborted' }
  | { readonly kind: 'over'; readonly reason: string };

/** The maximum validity of a yes, from its question on, milliseconds. */
export const freshMs = 5_000;
/** Between two askings, milliseconds. */
export const retryIntervalMs = 2_000;

interface Asking {
  readonly operationId: OperationId;
  readonly answered: (permission: BeginAnswer) => void;
}

/** One runner's questions. */
export class BeginRequests {
  readonly #clock: Clock;
  /** Sends the question; while no agent listens it goes nowhere. */
  readonly #send: (operationId: OperationId, sequence: bigint) => void;
  /** Whether the agent that was last connected answers. */
  #isAnswered = false;
  #sequence = 0n;
  #asking: Asking | undefined;
  /** Settles when all earlier questions are answered. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock, send: (operationId: OperationId, sequence: bigint) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** An agent has accepted us. */
  accepted(answers: boolean): void {
    this.#isAnswered = answers;
  }

  /** The agent has answered the question of this number. */
  answered(operationId: OperationId, sequence: bigint, permission: BeginAnswer): void {
    if (sequence !== this.#sequence || operationId !== this.#asking?.operationId) return;
    this.#asking.answered(permission);
  }

  /** Settles once it may begin, or never will. `tell` shows the reason for the wait. */
  ask(
    operationId: OperationId,
    signal: AbortSignal,
    tell: (reason: string) => void,
  ): Promise<BeginOutcome> {
    const end = this.#before.then(() => this.#askUntil(operationId, signal, tell));
    this.#before = whenSettled(end);
    return end;
  }

  async #askUntil(
    operationId: OperationId,
    signal: AbortSignal,
    tell: (reason: string) => void,
  ): Promise<BeginOutcome> {
    for (;;) {
      if (signal.aborted) return { kind: 'aborted' };
      if (!this.#isAnswered) return { kind: 'granted' };
      const askedAtMs = this.#clock.suspendAwareMs();
      const permission = await this.#askOnce(operationId, signal);
      if (signal.aborted) return { kind: 'aborted' };
      if (permission.kind === 'over') return permission;
      if (permission.kind === 'wait') tell(permission.reason);
      else {
        const countsMs = Math.min(freshMs, permission.forMs ?? freshMs);
        if (this.#clock.suspendAwareMs() - askedAtMs <= countsMs) return { kind: 'granted' };
      }
    }
  }

  /** Takes its time unless the answer is one to act on. */
  #askOnce(operationId: OperationId, signal: AbortSignal): Promise<BeginAnswer> {
    return new Promise((resolve) => {
      let last: BeginAnswer = { kind: 'wait', reason: 'waits for the agent' };
      const settle = (): void => {
        cancel();
        signal.removeEventListener('abort', settle);
        this.#asking = undefined;
        resolve(last);
      };
      const cancel = this.#clock.after(retryIntervalMs, settle);
      signal.addEventListener('abort', settle, { once: true });
      const answered = (permission: BeginAnswer): void => {
        last = permission;
        if (permission.kind !== 'wait') settle();
      };
      this.#asking = { operationId, answered };
      this.#sequence += 1n;
      this.#send(operationId, this.#sequence);
    });
  }
}
