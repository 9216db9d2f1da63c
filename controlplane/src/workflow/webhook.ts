/**
 * Makes the calls of webhook steps. Whether a call is permitted was decided before
 * (`steps/reach.ts`); the host engine acts on its result.
 *
 * Invariants:
 * 1. The receiver gets the id of the attempt as `Idempotency-Key`. A call whose arrival is unknown
 *    is repeated, and the receiver can recognize it.
 * 2. A redirect is not followed: the URL is permitted, not every target of its receiver.
 * 3. An internal address is called only where the fleet permits it (`steps/webhook-call.ts`).
 * 4. Time, request, response and parallel calls are bounded; what is sent is never logged.
 * 5. Secrets of headers are read only for the call. A response that repeats one is stored without
 *    it.
 */
import { create } from '@bufbuild/protobuf';
import { Masking, maskText, type OperationId, StepExitSchema } from '@rackwright/messages';
import {
  type Clock,
  invalid,
  type Log,
  parsedJson,
  type Read,
  valid,
  type WebAnswer,
  type WebClient,
  type WebRequest,
} from '@rackwright/platform';
import type { CallOutput, CallResult, CallWebhook, WebhookOrder } from '../host/index.ts';
import { isStoreUnavailable } from '../records/index.ts';
import { type GivenFor, OutOfBounds } from '../secrets/index.ts';
import { callWebhook, isJson, readSecrets } from '../steps/index.ts';

export interface WebhookParts {
  readonly web: WebClient;
  readonly clock: Clock;
  readonly log: Log;
  /** Internal addresses that the fleet lists; missing: there are none. */
  readonly internalAddresses?: () => Promise<readonly string[]>;
  /**
   * User name and password of a credential; undefined when it does not exist. May reject;
   * `OutOfBounds` is permanent.
   */
  readonly openCredential?: (
    name: string,
    operationId: OperationId,
    givenFor: GivenFor,
  ) => Promise<OpenedCredential | undefined>;
}

interface OpenedCredential {
  readonly username: string;
  readonly password: string;
}

/** The longest time for one call, whatever time the step has left. */
const callTimeoutMs = 60_000;
const callsAtOnceMax = 64;
const requestBytesMax = 64 * 1024;
const answerBytesMax = 64 * 1024;
const headersMax = 32;
const headerCharactersMax = 4_096;
const lastOutputCharactersMax = 512;

/** Makes the webhook calls of this control plane, each id once at a time. */
export function createWebhookCaller(parts: WebhookParts): CallWebhook {
  const { log } = parts;
  const underWay = new Set<string>();
  return (order, answer) => {
    const { id } = order;
    if (underWay.has(id)) return;
    const reportResult = (result: CallResult): Promise<void> =>
      answer(result).then(
        () => log.info({ operation: id, result: result.kind }, 'webhook called'),
        // It is called again once the store is available, and then reports the result.
        (error: unknown) => log.warn({ operation: id }, 'not recorded', error),
      );
    if (underWay.size >= callsAtOnceMax) {
      const message = `${callsAtOnceMax} other webhooks are being called`;
      void reportResult({ kind: 'transientError', message });
      return;
    }
    underWay.add(id);
    void call(parts, order)
      .catch((error: unknown): CallResult => {
        log.error({ operation: id }, 'a webhook could not be called', error);
        return { kind: 'failed', type: 'internal', message: 'the call could not be made' };
      })
      .then(reportResult)
      // Until its result is recorded: a reconcile of the host in between calls this again.
      .finally(() => underWay.delete(id));
  };
}

async function call(parts: WebhookParts, order: WebhookOrder): Promise<CallResult> {
  const isPlain = (order.arguments['secretHeaders'] ?? '') === '';
  const secrets = isPlain ? noSecrets : await secretHeaders(parts, order);
  if (secrets.kind !== 'found') return secrets.result;
  const result = await send(parts, order, secrets);
  return withoutSecrets(result, secrets.hidden);
}

type FoundSecrets =
  | {
      readonly kind: 'found';
      readonly headers: Readonly<Record<string, string>>;
      readonly hidden: readonly string[];
    }
  | { readonly kind: 'lacking'; readonly result: CallResult };

const noSecrets: FoundSecrets = { kind: 'found', headers: {}, hidden: [] };

async function secretHeaders(
  { openCredential, log }: WebhookParts,
  { id, arguments: given, rack }: WebhookOrder,
): Promise<FoundSecrets> {
  const lacking = (result: CallResult): FoundSecrets => ({ kind: 'lacking', result });
  const named = readSecrets(given['secretHeaders']);
  if (named === undefined) {
    const message = 'secretHeaders: cannot be read';
    return lacking({ kind: 'failed', type: 'invalidArgument', message });
  }
  const headers: Record<string, string> = {};
  const hidden: string[] = [];
  for (const { name, credential, part, prefix } of named) {
    let opened: OpenedCredential | undefined;
    try {
      opened = await openCredential?.(credential, id, { rack });
    } catch (error) {
      if (error instanceof OutOfBounds) {
        return lacking({ kind: 'failed', type: 'credentialUnusable', message: error.message });
      }
      log.error({ operation: id, credential }, 'a secret cannot be opened', error);
      const message = `${credential} cannot be opened now`;
      return lacking({ kind: 'transientError', message });
    }
    if (opened === undefined) {
      const message = `${credential}, which the header ${name} is to hold, does not exist`;
      return lacking({ kind: 'failed', type: 'credentialUnusable', message });
    }
    headers[name] = `${prefix}${opened[part]}`;
    hidden.push(opened[part]);
  }
  return { kind: 'found', headers, hidden };
}

/** Invariant 5, for texts other than the response itself. */
function withoutSecrets(result: CallResult, hidden: readonly string[]): CallResult {
  if (result.kind === 'complete' || hidden.length === 0) return result;
  return { ...result, message: maskText(result.message, hidden) };
}

async function send(
  { web, clock, log, internalAddresses }: WebhookParts,
  order: WebhookOrder,
  { headers, hidden }: FoundSecrets & { readonly kind: 'found' },
): Promise<CallResult> {
  const read = webhookRequest(order, headers);
  if (read.kind === 'bad') {
    return { kind: 'failed', type: 'invalidArgument', message: read.problem };
  }
  let listed: readonly string[];
  try {
    listed = internalAddresses === undefined ? [] : await internalAddresses();
  } catch (error) {
    if (isStoreUnavailable(error)) return { kind: 'transientError', message: 'the store is away' };
    log.error({ operation: order.id }, 'the internal addresses cannot be read', error);
    return { kind: 'transientError', message: 'the internal addresses cannot be read' };
  }
  const timeoutMs = Math.min(callTimeoutMs, order.deadlineMs - clock.nowMs());
  if (timeoutMs <= 0) return { kind: 'transientError', message: 'its time was over' };
  const called = await callWebhook(
    { web, clock },
    { request: read.value, internalAddresses: listed, timeoutMs },
    async (answer, origin) => judge(answer, await outputOf(answer, hidden), origin),
  );
  if (called.kind !== 'unanswered') return called;
  const { isForbidden, message } = called;
  return isForbidden
    ? { kind: 'failed', type: 'notAllowed', message }
    : { kind: 'transientError', message };
}

/** Statuses of 4xx that may pass with time: too slow, too early, too often. */
const mayPass: ReadonlySet<number> = new Set([408, 425, 429]);

function judge({ status, headers }: WebAnswer, output: CallOutput, origin: string): CallResult {
  if (status >= 200 && status < 300) return { kind: 'complete', output };
  if (status >= 300 && status < 400) {
    const to = URL.parse(headers['location'] ?? '', origin)?.origin ?? 'another place';
    const message = `${origin} redirects to ${to} (${status}), which is not followed: name it`;
    return { kind: 'failed', type: 'refused', message, output };
  }
  const { lastOutput } = output.exit;
  const text = lastOutput === '' ? '' : `: ${lastOutput.split('\n').at(-1)}`;
  const message = `${origin} answered ${status}${text}`;
  if (status < 400 || status >= 500 || mayPass.has(status)) {
    return { kind: 'transientError', message };
  }
  return { kind: 'failed', type: 'refused', message, output };
}

/** The stored part of the response; a body that breaks off changes no status. */
async function outputOf(answer: WebAnswer, hidden: readonly string[]): Promise<CallOutput> {
  const parts: Uint8Array[] = [];
  const masking = new Masking(hidden);
  let bytes = 0;
  let isWhole = false;
  try {
    for await (const part of answer.body) {
      parts.push(masking.push(part.slice(0, answerBytesMax - bytes)));
      bytes += part.length;
      if (bytes >= answerBytesMax) break;
    }
    isWhole = bytes < answerBytesMax;
  } catch {
    // The part that has arrived is used.
  } finally {
    answer.close();
  }
  // A possible start of a secret that was cut off is not kept.
  if (isWhole) parts.push(masking.end());
  const tail = Buffer.concat(parts).subarray(0, answerBytesMax);
  const exit = create(StepExitSchema, {
    code: answer.status,
    outputBytes: BigInt(bytes),
    lastOutput: lastOutputOf(tail),
  });
  return { exit, tail: new Uint8Array(tail) };
}

function lastOutputOf(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  const shown = text.replace(/[^\P{C}\n]/gu, '').trim();
  return shown.slice(-lastOutputCharactersMax).toWellFormed();
}

/** The request of an order, or what is wrong with it. */
export function webhookRequest(
  { id, arguments: given }: WebhookOrder,
  secrets: Readonly<Record<string, string>> = {},
): Read<WebRequest> {
  const { url = '', method = 'POST', body = '', headers: headersText = '' } = given;
  if (method !== 'POST' && method !== 'PUT') {
    return invalid(`method: "${method}" is neither POST nor PUT`);
  }
  if (URL.parse(url) === null)
    return invalid('url: must begin with https:// or http:// and a host');
  const headers = readHeaders(headersText, secrets);
  if (headers.kind === 'bad') return headers;
  const bytes = new TextEncoder().encode(body);
  if (bytes.length > requestBytesMax) {
    return invalid(`body: has ${bytes.length} bytes; at most ${requestBytesMax} are sent`);
  }
  const own = { 'idempotency-key': id, 'user-agent': 'rackwright' };
  const type = { 'content-type': isJson(body) ? 'application/json' : 'text/plain; charset=utf-8' };
  return valid({ method, url, headers: { ...type, ...headers.value, ...own }, body: bytes });
}

/** Headers of the connection, or our own. */
const refusedHeaders =
  /^(host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|idempotency-key|proxy-.*)$/;

/** The argument `headers`: a JSON object of texts, or empty. */
function readHeaders(
  text: string,
  secrets: Readonly<Record<string, string>>,
): Read<Record<string, string>> {
  const parsed = text === '' ? {} : parsedJson(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    return invalid('headers: must be a JSON object whose values are texts');
  }
  const headers: Record<string, string> = {};
  for (const [given, content] of [...Object.entries(parsed), ...Object.entries(secrets)]) {
    const name = given.toLowerCase();
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/.test(name)) {
      return invalid('headers: has a name that is none');
    }
    if (refusedHeaders.test(name)) {
      return invalid(`headers: ${name} is set by us, and by nobody else`);
    }
    const isText = typeof content === 'string' && /^[\x20-\x7e]*$/.test(content);
    if (!isText || content.length > headerCharactersMax) {
      const right = `at most ${headerCharactersMax} printable ASCII characters`;
      return invalid(`headers: ${name} must be ${right}`);
    }
    headers[name] = content;
  }
  const count = Object.keys(headers).length;
  return count > headersMax
    ? invalid(`headers: has ${count}; at most ${headersMax} are sent`)
    : valid(headers);
}
