/**
 * Carries out the decisions of a pass once its record is durable: sends, calls, releases.
 *
 * Invariants:
 * 1. An operation that can never be sent ends its attempt. One that could not be sent because the
 *    store was unavailable is sent later, while the record still has it.
 * 2. The results are folded in by a pass of the host, like everything else.
 */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  type FailureName,
  failureTypeOf,
  type HostId,
  type HostUid,
  type OperationId,
  store as wire,
} from '@rackwright/messages';
import { backoffDelayMs } from '@rackwright/results';
import { storeKey } from '@rackwright/store';
import type { Controller } from '../../loop/index.ts';
import { isStoreUnavailable, readShared } from '../../records/index.ts';
import { whyNotGiven } from '../../secrets/index.ts';
import { rackIdOf } from '../fleet/host-index.ts';
import { identityReservation } from '../fleet/removal.ts';
import { releaseReserved } from '../fleet/reservations.ts';
import type { PassResult } from '../pass/pass-result.ts';
import type { CallResult, HostEffect, HostEvent } from '../pass/types.ts';
import { callNobody, type WebhookOrder } from '../pass/webhook-order.ts';
import type { HostsDependencies } from './dependencies.ts';
import { type Sending, sendCancel, sendForget, sendOperation } from './effects.ts';
import type { Limits } from './limits.ts';
import type { StepProgress } from './progress.ts';

export interface PerformingParts {
  readonly limits: Limits;
  readonly progress: StepProgress;
  /** Nothing is sent later once its signal aborts. */
  readonly controller: Pick<Controller, 'take' | 'signal'>;
  /** Folds an event in, in a pass of its host. */
  readonly post: (hostId: HostId, event: HostEvent) => Promise<PassResult>;
}

/** Carries out the effects of a pass, once the record of the pass is durable. */
export class EffectPerformer {
  readonly #deps: HostsDependencies;
  readonly #parts: PerformingParts;

  constructor(deps: HostsDependencies, parts: PerformingParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  async perform(hostId: HostId, record: wire.HostRecord, effect: HostEffect): Promise<void> {
    const rackId = rackIdOf(record);
    switch (effect.kind) {
      case 'certify':
      case 'document':
      case 'answer':
      case 'abandon':
      case 'facts':
      case 'stepOutput':
        return;
      case 'callWebhook':
        this.#callWebhook(hostId, effect);
        return;
      case 'send':
        await this.#sendOrFail(hostId, sendingOf(record, effect.operation), 1);
        return;
      case 'releaseIdentity':
        if (record.host !== undefined) {
          await releaseReserved(this.#deps, record.host, [identityReservation(effect.guid)]);
        }
        return;
      case 'cancel':
        sendCancel(this.#deps, rackId, record, effect);
        return;
      case 'progress':
        this.#parts.progress.keep(hostId, record, effect.continuing, this.#deps.clock.nowMs());
        return;
      case 'quota':
        this.#parts.limits.change(record, effect);
        return;
      case 'tombstone':
      case 'forget':
        sendForget(this.#deps, rackId, record);
    }
  }

  #callWebhook(hostId: HostId, order: WebhookOrder): void {
    const answer = (result: CallResult) =>
      this.#parts.post(hostId, { kind: 'webhookResult', id: order.id, result });
    (this.#deps.callWebhook ?? callNobody)(order, answer);
  }

  /** An operation that cannot be sent at all fails its host, and affects no other. */
  async #sendOrFail(hostId: HostId, sending: Sending, attempt: number): Promise<void> {
    try {
      await sendOperation(this.#deps, sending);
    } catch (error) {
      this.#deps.log.error({ host: hostId }, 'an operation cannot be sent', error);
      const report = failedReport(sending.operation, 'credentialUnusable', whyNotGiven(error));
      const ended = isStoreUnavailable(error)
        ? Promise.reject(error)
        : this.#parts.post(hostId, { kind: 'report', report });
      ended.catch((cause: unknown) => {
        this.#sendAfter(cause, hostId, sending.operation, attempt);
      });
    }
  }

  /** The store logs by itself that it is away. */
  #sendAfter(failure: unknown, hostId: HostId, operation: agent.Operation, attempt: number): void {
    const { retryDelayMs: firstMs, retryDelayMaxMs: delayMsMax } = this.#deps.timing;
    const delayMs = backoffDelayMs({ attempt, firstMs, delayMsMax, key: operation.id });
    if (!isStoreUnavailable(failure)) {
      const fields = { host: hostId, operation: operation.id, delayMs };
      this.#deps.log.warn(fields, 'an operation is not sent yet; it is tried again', failure);
    }
    this.#sendLater(hostId, operation, attempt + 1, delayMs);
  }

  /**
   * The store was unavailable; an unsent operation is retried while it is still the one to send.
   */
  #sendLater(hostId: HostId, operation: agent.Operation, attempt: number, delayMs: number): void {
    const again = async () => {
      const key = storeKey('hosts', hostId);
      const kept = await readShared(this.#deps.store, wire.HostRecordSchema, key);
      if (kept?.record.operation?.operation?.id !== operation.id) return;
      await this.#sendOrFail(hostId, sendingOf(kept.record, operation), attempt);
    };
    this.#deps.clock.after(delayMs, () => {
      const { controller } = this.#parts;
      if (controller.signal.aborted) return;
      controller
        .take(hostId, again)
        .catch((cause: unknown) => this.#sendAfter(cause, hostId, operation, attempt));
    });
  }
}

function sendingOf(record: wire.HostRecord, operation: agent.Operation): Sending {
  return { rackId: rackIdOf(record), operation, sentTo: record.operation?.sentTo };
}

/** The end of an attempt after an error on our side, in the form of an agent's report. */
export function failedReport(
  { id, hostUid }: { readonly id: OperationId; readonly hostUid: HostUid },
  name: FailureName,
  message: string,
): agent.Report {
  const value = create(agent.FailedSchema, { type: failureTypeOf(name), message });
  const result = { case: 'failed' as const, value };
  return create(agent.ReportSchema, { operationId: id, hostUid, result });
}
