/** Outcomes of the web client as failures of this package. */
import type { WebAnswer, WebOutcome } from '@rackwright/platform';
import { OciError } from '../failure.ts';
import { retryAfterMs } from './retry-after.ts';

/** Redirects of one request. */
export const redirectsMax = 5;

/** The answer, or the error in its place. */
export function answerOf(outcome: WebOutcome, host: string): WebAnswer {
  switch (outcome.kind) {
    case 'answered':
      return outcome;
    case 'cancelled':
      throw new OciError('cancelled', 'given up');
    case 'noHttp':
      throw new OciError('refused', `${host} cannot be asked so: ${outcome.message}`);
    case 'forbidden':
      throw new OciError('forbidden', `${host} is not asked: ${outcome.message}`);
    case 'untrusted': {
      const message = `the certificate of ${host} is not trusted: ${outcome.message}`;
      throw new OciError('untrusted', message);
    }
    case 'unreachable':
      throw new OciError('unreachable', `${host} does not answer: ${outcome.message}`);
  }
}

/** A refusal by its status alone. */
export function refusedFor(
  status: number,
  headers: Readonly<Record<string, string>>,
  message: string,
): OciError {
  if (status === 429)
    return new OciError('tooMany', message, { retryAfterMs: retryAfterMs(headers) });
  const mayPass = status === 408 || status >= 500;
  if (mayPass) return new OciError('unreachable', message, { retryAfterMs: retryAfterMs(headers) });
  return new OciError('refused', message);
}

/** The target of a redirect. Throws when it must not be followed. */
export function redirected(from: URL, location: string): URL {
  const to = URL.parse(location, from.href);
  const isWeb = to?.protocol === 'https:' || to?.protocol === 'http:';
  if (to === null || !isWeb || to.username !== '' || to.password !== '') {
    throw new OciError('refused', `${from.host} redirects to what is no address`);
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    const message = `${from.host} redirects to ${to.host} over plain HTTP, which is not safe`;
    throw new OciError('refused', message);
  }
  return to;
}
