/** What the host engine asks of whoever makes the calls of webhook steps. */
import type { RackName } from '@rackwright/messages';
import type { CallResult } from './types.ts';

export interface WebhookOrder {
  /** "<host uid>/<run>/<step>/<attempt>": the idempotency key that the receiver is shown. */
  readonly id: string;
  /** `url`, `method`, `body` and `headers`, as the template gives them. */
  readonly arguments: Readonly<Record<string, string>>;
  /** Wall time after which nobody waits for the answer any more. */
  readonly deadlineMs: number;
  /** "racks/RACK" of the host: a secret that is not for its hosts does not go with the call. */
  readonly rack: RackName;
}

/**
 * Makes a call and answers with what came of it. It may be asked again for an id that it is still
 * at, and then does nothing; one that it has answered is asked for again only on purpose.
 * `answer` rejects while the store is away: it is asked again then.
 */
export type CallWebhook = (
  order: WebhookOrder,
  answer: (result: CallResult) => Promise<unknown>,
) => void;

/** Where nobody makes calls. */
export const callNobody: CallWebhook = (_order, answer) => {
  const message = 'this control plane makes no webhook calls';
  answer({ kind: 'failed', type: 'unsupported', message }).catch(() => undefined);
};
