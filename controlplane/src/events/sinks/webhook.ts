/**
 * Sends events to a webhook: one CloudEvent per request, in structured mode, signed.
 *
 * Invariants:
 * 1. The fleet must permit the URL; this is checked at each request. `steps/webhook-call.ts` makes
 *    the call.
 * 2. A request is bounded in time, and its response body is not read: a receiver that hangs costs
 *    one timer, and a large response costs nothing.
 * 3. The secret is opened only for the signature.
 */
import {
  type CredentialName,
  type Event,
  type Fleet,
  type Incarnation,
  webhookStep,
} from '@rackwright/messages';
import { type Clock, errorText, type WebClient } from '@rackwright/platform';
import { callWebhook, reachProblem } from '../../steps/index.ts';
import { cloudEventMediaType, cloudEventOf } from './cloud-event.ts';
import { secretForm, signatureHeaders, signingKey } from './signature.ts';
import type { DeliveryAttempt } from './window.ts';

export interface WebhookSender {
  readonly web: WebClient;
  readonly clock: Clock;
  readonly incarnation: Incarnation;
  readonly fleet: () => Promise<Fleet | undefined>;
  /** The password of a credential; undefined: there is none. Rejects where it may not be used. */
  readonly secretOf: (credential: CredentialName) => Promise<string | undefined>;
}

/** Longest time of one request. */
export const requestTimeoutMs = 10_000;

/** What is wrong with a URL of a sink; undefined when the fleet permits it. */
export function webhookUrlProblem(fleet: Fleet | undefined, url: string): string | undefined {
  return reachProblem(fleet?.spec?.templates, { step: webhookStep, arguments: { url } });
}

export async function sendToWebhook(
  sender: WebhookSender,
  { url, credential }: { readonly url: string; readonly credential: CredentialName },
  event: Event,
  signal?: AbortSignal,
): Promise<DeliveryAttempt> {
  const { web, clock, incarnation } = sender;
  const fleet = await sender.fleet();
  const problem = webhookUrlProblem(fleet, url);
  if (problem !== undefined) return { kind: 'failed', problem };
  const secret = await secretOf(sender, credential);
  if (secret.kind === 'lacking') return { kind: 'failed', problem: secret.problem };
  const body = new TextEncoder().encode(JSON.stringify(cloudEventOf(incarnation, event)));
  const headers = {
    'content-type': cloudEventMediaType,
    'user-agent': 'rackwright',
    ...signatureHeaders(secret.key, event.id, clock.nowMs(), body),
  };
  const request = { method: 'POST', url, headers, body } as const;
  const internalAddresses = fleet?.spec?.internalAddresses ?? [];
  const call = { request, internalAddresses, timeoutMs: requestTimeoutMs, signal };
  const called = await callWebhook({ web, clock }, call, (answer, origin) => {
    answer.close();
    return judge(origin, answer.status, answer.headers['retry-after']);
  });
  return called.kind === 'unanswered' ? failed(called.message) : called;
}

function failed(problem: string): DeliveryAttempt {
  return { kind: 'failed', problem };
}

type SecretLookup =
  | { readonly kind: 'found'; readonly key: Uint8Array }
  | { readonly kind: 'lacking'; readonly problem: string };

async function secretOf(
  { secretOf: open }: WebhookSender,
  credential: CredentialName,
): Promise<SecretLookup> {
  let secret: string | undefined;
  try {
    secret = await open(credential);
  } catch (error) {
    const why = errorText(error);
    return { kind: 'lacking', problem: `${credential}, which signs, cannot be used: ${why}` };
  }
  const key = secret === undefined ? undefined : signingKey(secret);
  if (key !== undefined) return { kind: 'found', key };
  const problem =
    secret === undefined
      ? `${credential}, which signs, does not exist; create it`
      : `the password of ${credential}, which signs, must be ${secretForm}`;
  return { kind: 'lacking', problem };
}

/** Statuses that reject this particular event permanently. */
const refusing: ReadonlySet<number> = new Set([400, 413, 415, 422]);

function judge(origin: string, status: number, retryAfter: string | undefined): DeliveryAttempt {
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  if (refusing.has(status)) return { kind: 'refused', problem: `${origin} answered ${status}` };
  if (status >= 300 && status < 400) {
    return failed(`${origin} redirects (${status}), which is not followed: name where to`);
  }
  const seconds = /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) : 0;
  const problem = `${origin} answered ${status}`;
  return seconds === 0 ? failed(problem) : { kind: 'failed', problem, pauseMs: seconds * 1_000 };
}
