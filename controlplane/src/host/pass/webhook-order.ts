/** The host engine's order for a webhook call. */
import type { RackName } from '@rackwright/messages';
import type { CallResult } from './types.ts';

export interface WebhookOrder {
  /** "<host uid>/<run>/<step>/<attempt>": the idempotency key for the receiver. */
  readonly id: string;
  /** `url`, `method`, `body` and `headers`, as the template gives them. */
  readonly arguments: Readonly<Record<string, string>>;
  /** Wall time after which the answer is no longer awaited. */
  readonly deadlineMs: number;
  /** "racks/RACK" of the host: a secret that is not for its hosts is not sent with the call. */
  readonly rack: RackName;
}

/**
 * Makes a call and reports its result. It may be called again for an id in progress, and then does
 * nothing. It is called again for an answered id only on purpose. `answer` rejects while the store
 * is unavailable: it is then called again.
 */
export type CallWebhook = (
  order: WebhookOrder,
  answer: (result: CallResult) => Promise<unknown>,
) => void;

/** For a platform without outgoing calls. */
export const callNobody: CallWebhook = (_order, answer) => {
  const message = 'this control plane makes no webhook calls';
  // The host asks again once the store is back.
  answer({ kind: 'failed', type: 'unsupported', message }).catch(() => undefined);
};
