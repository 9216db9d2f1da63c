/**
 * One request to the receiver of a webhook, for steps of workflows and for events. Whether its URL
 * may be called was decided before (`reach.ts`).
 *
 * Invariants:
 * 1. A redirect is not followed.
 * 2. An internal address is called only where the fleet lists it, or names it in the matching
 *    prefix of the URL: the resolved address is checked when the connection is made.
 * 3. Request and response together are bounded in time.
 */
import {
  type Clock,
  entriesNaming,
  parsedJson,
  type WebAnswer,
  type WebClient,
  type WebRequest,
} from '@rackwright/platform';

export interface WebhookCall {
  readonly request: Omit<WebRequest, 'internal'>;
  /** Internal addresses that the fleet lists. */
  readonly internalAddresses: readonly string[];
  readonly timeoutMs: number;
  /** Cancels the call. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * There was no response. `isForbidden`: by the fleet's list of internal addresses; nothing was
 * sent.
 */
export interface UnansweredCall {
  readonly kind: 'unanswered';
  readonly isForbidden: boolean;
  readonly message: string;
}

const answerHeaderBytesMax = 16 * 1024;

/**
 * The result of `judge` for the response, whose body it reads or closes. Rejects as `judge` does.
 */
export async function callWebhook<T>(
  { web, clock }: { readonly web: WebClient; readonly clock: Pick<Clock, 'after'> },
  { request, internalAddresses, timeoutMs, signal }: WebhookCall,
  judge: (answer: WebAnswer, origin: string) => Promise<T> | T,
): Promise<T | UnansweredCall> {
  const { origin, host, protocol } = new URL(request.url);
  const named = entriesNaming(host, protocol === 'https:' ? 443 : 80);
  const internal = [...internalAddresses, ...named];
  const limits = {
    answerTimeoutMs: timeoutMs,
    silenceMs: timeoutMs,
    headerBytesMax: answerHeaderBytesMax,
  };
  const late = new AbortController();
  const stop = () => late.abort();
  signal?.addEventListener('abort', stop, { once: true });
  const cancelTimer = clock.after(timeoutMs, stop);
  const release = () => {
    cancelTimer();
    signal?.removeEventListener('abort', stop);
  };
  try {
    const outcome = await web.send({ ...request, internal }, limits, late.signal);
    switch (outcome.kind) {
      case 'answered':
        return await judge(outcome, origin);
      case 'cancelled':
        return unanswered(`${origin} did not answer in ${Math.round(timeoutMs / 1_000)} s`);
      case 'untrusted':
        return unanswered(`the certificate of ${origin} is not trusted: ${outcome.message}`);
      case 'forbidden': {
        const message = `${origin} is not called: ${outcome.message}`;
        return { kind: 'unanswered', isForbidden: true, message };
      }
      case 'noHttp':
      case 'unreachable':
        return unanswered(`${origin}: ${outcome.message}`);
    }
  } finally {
    release();
  }
}

function unanswered(message: string): UnansweredCall {
  return { kind: 'unanswered', isForbidden: false, message };
}

/** Whether a body is one JSON value (RFC 8259). */
export function isJson(body: string): boolean {
  return parsedJson(body) !== undefined;
}
