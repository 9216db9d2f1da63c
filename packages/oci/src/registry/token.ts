/**
 * Tokens (distribution's "Token Authentication Specification"): a registry names a service. The
 * service gives a token to a client with the credential, or to everyone for public content.
 */
import type { WebClient, WebLimits } from '@rackwright/platform';
import { OciError } from '../failure.ts';
import { parseJson, textAt } from '../json.ts';
import { readBody } from './body.ts';
import type { Challenge } from './challenge.ts';
import { answerOf } from './outcome.ts';
import { retryAfterMs } from './retry-after.ts';

export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
}

const tokenBodyBytesMax = 64 * 1024;
const tokenForm = /^[\x21-\x7e]{1,32768}$/;

/** The token service's URL for a scope of `repository`. Throws when it must not be used. */
export function tokenUrl(
  { parameters }: Challenge,
  repository: string,
  scope: string,
  plainHttp: boolean,
): string {
  const url = URL.parse(parameters['realm'] ?? '');
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '') {
    throw new OciError('refused', 'the registry names no token service that can be asked');
  }
  if (url.protocol === 'http:' && !plainHttp) {
    const message = 'the registry sends its callers to a token service over plain HTTP';
    throw new OciError('refused', `${message}, which is not safe`);
  }
  const { service } = parameters;
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${repository}:${scope}`);
  return url.href;
}

/** The request for a token. */
export interface TokenAsk {
  readonly url: string;
  readonly credential: RegistryCredential | undefined;
  /** As for the registry. */
  readonly caPem: string | undefined;
  readonly internal: readonly string[] | undefined;
  readonly limits: WebLimits;
  readonly signal: AbortSignal | undefined;
}

export async function fetchToken(web: WebClient, ask: TokenAsk): Promise<string> {
  const { url, credential, caPem, internal, limits, signal } = ask;
  const headers = credential === undefined ? {} : { authorization: basic(credential) };
  const own = {
    ...(caPem === undefined ? {} : { caPem }),
    ...(internal === undefined ? {} : { internal }),
  };
  const { host } = new URL(url);
  const outcome = await web.send({ method: 'GET', url, headers, ...own }, limits, signal);
  const answer = answerOf(outcome, `the token service ${host}`);
  const { status } = answer;
  if (status !== 200) answer.close();
  if (status === 400 || status === 401 || status === 403) {
    const whom = credential === undefined ? 'anybody without a credential' : credential.username;
    throw new OciError('unauthorized', `the token service ${host} gives no token to ${whom}`);
  }
  if (status !== 200) {
    const message = `the token service ${host} answers ${status}`;
    const wait = { retryAfterMs: retryAfterMs(answer.headers) };
    if (status === 429) throw new OciError('tooMany', message, wait);
    throw new OciError('unreachable', message, wait);
  }
  const body = parseJson(await readBody(answer, tokenBodyBytesMax, 'token'), 'token');
  const token = textAt(body, 'token') || textAt(body, 'access_token');
  if (!tokenForm.test(token)) {
    throw new OciError('refused', `the token service ${host} answers without a token`);
  }
  return token;
}

/** RFC 7617. */
export function basic({ username, password }: RegistryCredential): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
