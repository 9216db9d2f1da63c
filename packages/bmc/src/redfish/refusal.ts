/**
 * The meaning of an answer that is no success (DSP0266 §7.11, §8.6).
 *
 * 1. 401 is a failure of the credential, and so is 403 until the BMC has accepted it; a passing
 *    cause is transient; an answer that is no Redfish is named as what it is.
 * 2. The BMC's own words are kept, bounded, with every secret of the conversation taken out.
 */
import type { HttpsOutcome } from '@rackwright/platform';
import { type BmcFailed, type BmcTransient, failed, transient } from '../driver.ts';
import { objectAt, objectsAt, parseObject, textAt } from './json.ts';

export type BmcRefusal = BmcFailed | BmcTransient;
export type HttpAnswer = Extract<HttpsOutcome, { kind: 'answered' }>;

const textCharactersMax = 512;
const excerptCharactersMax = 80;
const messagesMax = 4;
/** A BMC that asks for a longer pause is asked after this one all the same. */
const askAgainSecondsMax = 300;

/** The target of a request: for messages. */
export interface RequestTarget {
  readonly method: string;
  readonly path: string;
  /** Taken out of the BMC's words, should they appear. */
  readonly secrets: readonly string[];
}

const busyStatuses: ReadonlySet<number> = new Set([409, 423, 429, 503]);
const troubleStatuses: ReadonlySet<number> = new Set([408, 500, 502, 504]);
const unknownStatuses: ReadonlySet<number> = new Set([404, 405, 410, 501]);

/** The BMC's view of who asks. */
export interface CallerStatus {
  /** It has granted a session, which may end. */
  readonly hasSession: boolean;
  /** It has accepted user and password within this conversation. */
  readonly isAccepted: boolean;
}

/** An answer of 400 and above. */
export function refusalOfStatus(
  answer: HttpAnswer,
  requestTarget: RequestTarget,
  { hasSession, isAccepted }: CallerStatus,
): BmcRefusal {
  const { status } = answer;
  const { method, path } = requestTarget;
  const text = safeText(`${status}: ${textOf(answer)}`, requestTarget.secrets);
  if (status === 401 && hasSession) {
    return transient('busy', 'the BMC ended the session before its time', text);
  }
  if (status === 403 && isAccepted) {
    const remedy = 'give it the administrator role';
    return failed('privilege', `the BMC user may not ${method} ${path}: ${remedy}`, text);
  }
  if (status === 401 || status === 403) return refusedSignIn(text);
  if (busyStatuses.has(status)) {
    const retryAfterMs = retryAfterOf(answer);
    const busy = transient('busy', `the BMC is busy (${status})`, text);
    return retryAfterMs === undefined ? busy : { ...busy, retryAfterMs: retryAfterMs };
  }
  if (troubleStatuses.has(status)) {
    return transient('trouble', `the BMC has trouble of its own (${status})`, text);
  }
  if (unknownStatuses.has(status)) {
    return failed('unsupported', `the BMC does not know ${method} ${path}`, text);
  }
  return failed('rejected', `the BMC refused ${method} ${path}`, text);
}

/** The failure of a request whose answer is neither a success nor a refusal. */
export function withOddAnswer(failure: BmcRefusal, { method }: RequestTarget): BmcRefusal {
  const isOpen = failure.kind === 'failed' && method !== 'GET';
  return isOpen ? { ...failure, afterSending: true } : failure;
}

/** Retry-After in seconds (RFC 9110 §10.2.3); a date refers to another clock. */
function retryAfterOf({ headers }: HttpAnswer): number | undefined {
  const seconds = /^\d{1,6}$/.exec(headers['retry-after']?.trim() ?? '');
  return seconds === null ? undefined : Math.min(Number(seconds[0]), askAgainSecondsMax) * 1_000;
}

/** Not "blocked" nor "clock": another cause must not be told as a locked account. */
const lockedAccount =
  /(?<![A-Za-z])lock(?:ed| ?out)|(?<![A-Z])L(?:ock|OCK)(?:ed| ?[Oo]ut|ED| ?OUT)/;

/** Redfish has no code for a locked account: services report it in their own words. */
function refusedSignIn(text: string): BmcFailed {
  if (!lockedAccount.test(text)) {
    const message = 'the BMC does not accept user and password: correct the credential';
    return failed('authentication', message, text);
  }
  const message =
    'the BMC has locked the account: wait until it lets it in again, or unlock it there; ' +
    'then store the credential again';
  return failed('lockedOut', message, text);
}

/** A success whose content no Redfish service would send. */
export function refusalOfNonsense(answer: HttpAnswer, requestTarget: RequestTarget): BmcFailed {
  const statusText = `${answer.status}: ${excerpt(answer)}`;
  const message = 'what answers is no Redfish service: correct the address, or restart the BMC';
  return failed('protocol', message, safeText(statusText, requestTarget.secrets));
}

/** The messages of an error, or the answer's text where it has none. */
export function textOf(answer: HttpAnswer): string {
  const body = parseObject(answer.body);
  if (body === undefined) return excerpt(answer);
  const error = objectAt(body, 'error');
  const texts = [
    ...objectsAt(error, '@Message.ExtendedInfo'),
    ...objectsAt(body, '@Message.ExtendedInfo'),
  ];
  const messages = texts
    .slice(0, messagesMax)
    .map((one) => textAt(one, 'Message') ?? textAt(one, 'MessageId'))
    .filter((text) => text !== undefined);
  if (messages.length > 0) return messages.join('; ');
  return textAt(error, 'message') ?? textAt(error, 'code') ?? 'no words';
}

/** Whether an error names one of DMTF's messages, in any version of its registry. */
export function namesMessage(answer: HttpAnswer, key: string): boolean {
  const error = objectAt(parseObject(answer.body) ?? {}, 'error');
  const ids = objectsAt(error, '@Message.ExtendedInfo').map((one) => textAt(one, 'MessageId'));
  return [...ids, textAt(error, 'code')].some((id) => id?.endsWith(`.${key}`) === true);
}

function excerpt({ headers, body }: HttpAnswer): string {
  const type = headers['content-type'] ?? 'without a content type';
  if (body.length === 0) return `nothing (${type})`;
  const text = new TextDecoder().decode(body.subarray(0, excerptCharactersMax * 4));
  const line = text.replaceAll(/\s+/g, ' ').trim().slice(0, excerptCharactersMax);
  return `${type}, beginning ${JSON.stringify(line)}`;
}

/** Bounded, printable, and without any of `secrets`. */
export function safeText(text: string, secrets: readonly string[]): string {
  let safe = text.replaceAll(/\p{Cc}/gu, ' ');
  for (const secret of secrets) {
    if (secret !== '') safe = safe.replaceAll(secret, '***');
  }
  return safe.slice(0, textCharactersMax);
}
