/**
 * Sends the questions of gates to their webhooks, and keeps the answers until the next pass. Only
 * in memory: a lost answer is requested again, under the same key, because the record has the
 * question.
 */
import type { PoolId, ReplicaId } from '@rackwright/messages';
import type { CallResult, CallWebhook } from '../../host/index.ts';
import type { Policy } from '../../steps/index.ts';
import type { GateFacts, GateOrder } from '../decide/gate.ts';

export interface QuestionsDependencies {
  readonly callWebhook?: CallWebhook;
  readonly replicaId?: ReplicaId;
}

export class Questions {
  readonly #deps: QuestionsDependencies;
  readonly #answered: (poolId: PoolId) => void;
  readonly #answers = new Map<PoolId, Map<string, CallResult>>();

  /** `answered` is called when there is an answer to take. */
  constructor(deps: QuestionsDependencies, answered: (poolId: PoolId) => void) {
    this.#deps = deps;
    this.#answered = answered;
  }

  /** The answers that have come since the last call. */
  take(poolId: PoolId, policy: Policy): GateFacts {
    const answers = this.#answers.get(poolId) ?? new Map<string, CallResult>();
    this.#answers.delete(poolId);
    return { replica: this.#deps.replicaId ?? '', policy, answers };
  }

  /** The answers were not written: they are delivered again. */
  putBack(poolId: PoolId, { answers }: GateFacts): void {
    if (answers.size === 0) return;
    this.#answers.set(poolId, new Map([...answers, ...(this.#answers.get(poolId) ?? [])]));
  }

  /** Sends the questions of the record; one in progress is not sent twice. */
  put(poolId: PoolId, orders: readonly GateOrder[]): void {
    for (const order of orders) {
      if (this.#answers.get(poolId)?.has(order.id) === true) continue;
      this.#deps.callWebhook?.(order, async (result) => {
        const answers = this.#answers.get(poolId) ?? new Map<string, CallResult>();
        this.#answers.set(poolId, answers.set(order.id, result));
        this.#answered(poolId);
      });
    }
  }

  forget(poolId: PoolId): void {
    this.#answers.delete(poolId);
  }
}
