/**
 * Tokens (distribution's "Token Authentication Specification"): a registry names a service, which
 * gives a token to whoever shows the credential there, or to everyone for what is public.
 */
import type { WebClient, WebLimits } from '@rackwright/platform';
import { OciError } from '../failure.ts';
import { parseJson, textAt } from '../json.ts';
import { readBody } from './body.ts';
import type { Challenge } from './challenge.ts';

export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
}

const tokenBodyBytesMax = 64 * 1024;
const tokenForm = /^[\x21-\x7e]{1,32768}$/;

/** The token service's URL for pulling from `repository`. Throws when it may not be asked. */
export function tokenUrl(
  { parameters }: Challenge,
  repository: string,
  plainHttp: boolean,
): string {
  const url = URL.parse(parameters['realm'] ?? '');
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '') {
    throw new OciError('malformed', 'the registry names no token service that can be asked');
  }
  if (url.protocol === 'http:' && !plainHttp) {
    const message = 'the registry sends its callers to a token service over plain HTTP';
    throw new OciError('malformed', `${message}, which is not safe`);
  }
  const { service } = parameters;
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${repository}:pull`);
  return url.href;
}

/** Asks for a token. */
export async function fetchToken(
  web: WebClient,
  url: string,
  credential: RegistryCredential | undefined,
  limits: WebLimits,
  signal: AbortSignal | undefined,
): Promise<string> {
  const headers = credential === undefined ? {} : { authorization: basic(credential) };
  const answer = await web.send({ method: 'GET', url, headers }, limits, signal);
  const { host } = new URL(url);
  if (answer.kind === 'cancelled') throw new OciError('unreachable', 'given up');
  if (answer.kind !== 'answered') {
    throw new OciError('unreachable', `the token service ${host}: ${answer.message}`);
  }
  const { status } = answer;
  if (status !== 200) answer.close();
  if (status === 400 || status === 401 || status === 403) {
    const whom = credential === undefined ? 'anybody without a credential' : credential.username;
    throw new OciError('unauthorized', `the token service ${host} gives no token to ${whom}`);
  }
  if (status !== 200) {
    throw new OciError('unreachable', `the token service ${host} answers ${status}`);
  }
  const body = parseJson(await readBody(answer, tokenBodyBytesMax, 'token'), 'token');
  const token = textAt(body, 'token') || textAt(body, 'access_token');
  if (!tokenForm.test(token)) {
    throw new OciError('malformed', `the token service ${host} answers without a token`);
  }
  return token;
}

/** RFC 7617. */
export function basic({ username, password }: RegistryCredential): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
