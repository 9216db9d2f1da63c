/**
 * An identity provider as a program without a browser sees it: its metadata (OpenID Connect
 * Discovery 1.0 §4), device authorisation (RFC 8628) and refreshed tokens (RFC 6749 §6).
 *
 * Invariant: no error carries a token, a code or a secret, and no answer of more than
 * `answerBytesMax` is read.
 */
import { parsedJson, type WebClient, type WebLimits } from '@rackwright/platform';
import type { LoginSettings } from '../config-file.ts';
import { InterruptedError, ServerUnreachable, SignInNeeded, UsageError } from '../failure.ts';
import { clean } from '../output/text.ts';

const answerBytesMax = 256 * 1_024;
const limits: WebLimits = { answerTimeoutMs: 15_000, silenceMs: 15_000, headerBytesMax: 32_768 };
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

/** The provider's settings, and its client. */
export interface Provider {
  readonly settings: LoginSettings;
  readonly web: WebClient;
  readonly caPem: string | undefined;
  readonly signal: AbortSignal;
}

/** The provider's endpoints. */
export interface Endpoints {
  readonly device: string;
  readonly token: string;
}

/** The person's part of a sign-in (RFC 8628 §3.2). */
export interface DeviceCode {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly verificationUri: string;
  /** With the code in it; unset: it has to be typed. */
  readonly completeUri: string | undefined;
  readonly expiresInMs: number;
  readonly intervalMs: number;
}

/** The result of a sign-in. */
export interface Tokens {
  readonly idToken: string | undefined;
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** The life of the access token; undefined: unreported. */
  readonly expiresInMs: number | undefined;
}

/** The outcome of one request for tokens (RFC 8628 §3.5). */
export type TokenAnswer =
  | { readonly kind: 'tokens'; readonly tokens: Tokens }
  | { readonly kind: 'pending' }
  | { readonly kind: 'slowDown' }
  /** The person refused, the code or the refresh token has ended. */
  | { readonly kind: 'refused'; readonly why: string };

/** Reads the provider's endpoints. Throws `UsageError` when it lacks a needed one. */
export async function endpointsOf(provider: Provider): Promise<Endpoints> {
  const { issuer } = provider.settings;
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const { status, body } = await ask(provider, 'GET', url);
  if (status !== 200) throw new UsageError(`${url} answers ${status}; is this the right issuer?`);
  // OpenID Connect Discovery 1.0 §4.3: it must be the very issuer.
  if (body['issuer'] !== issuer) {
    throw new UsageError(`${url} is of the issuer "${textOf(body, 'issuer')}", not of "${issuer}"`);
  }
  const [device, token] = [
    textOf(body, 'device_authorization_endpoint'),
    textOf(body, 'token_endpoint'),
  ];
  if (device === '' || token === '') {
    throw new UsageError(`${issuer} offers no sign-in by device code (RFC 8628)`);
  }
  for (const each of [device, token]) checkEndpoint(each);
  return { device, token };
}

/** Codes and tokens go nowhere but by HTTPS. */
function checkEndpoint(url: string): void {
  if (URL.parse(url)?.protocol === 'https:') return;
  throw new UsageError(`the identity provider names "${clean(url)}", which is no https URL`);
}

/** Begins a sign-in. */
export async function beginDevice(provider: Provider, at: Endpoints): Promise<DeviceCode> {
  const { clientId, scope } = provider.settings;
  const { status, body } = await ask(provider, 'POST', at.device, { client_id: clientId, scope });
  const deviceCode = textOf(body, 'device_code');
  const userCode = textOf(body, 'user_code');
  // Some providers from before the RFC use "verification_url".
  const verificationUri = textOf(body, 'verification_uri') || textOf(body, 'verification_url');
  if (status !== 200 || deviceCode === '' || userCode === '' || verificationUri === '') {
    throw new UsageError(`${at.device} begins no sign-in: ${errorOf(status, body)}`);
  }
  const completeUri = textOf(body, 'verification_uri_complete');
  return {
    ...{ deviceCode, userCode, verificationUri },
    completeUri: completeUri === '' ? undefined : completeUri,
    expiresInMs: secondsOf(body, 'expires_in', [1, 3_600], 600) * 1_000,
    intervalMs: secondsOf(body, 'interval', [1, 60], 5) * 1_000,
  };
}

/** Asks whether the person has signed in. */
export function askForTokens(
  provider: Provider,
  at: Endpoints,
  deviceCode: string,
): Promise<TokenAnswer> {
  const { clientId } = provider.settings;
  return tokensFrom(provider, at, {
    grant_type: deviceGrant,
    device_code: deviceCode,
    client_id: clientId,
  });
}

/** Requests new tokens with a refresh token. */
export function refresh(provider: Provider, at: Endpoints, token: string): Promise<TokenAnswer> {
  const { clientId } = provider.settings;
  return tokensFrom(provider, at, {
    grant_type: 'refresh_token',
    refresh_token: token,
    client_id: clientId,
  });
}

async function tokensFrom(
  provider: Provider,
  at: Endpoints,
  form: Readonly<Record<string, string>>,
): Promise<TokenAnswer> {
  const { status, body } = await ask(provider, 'POST', at.token, form);
  const accessToken = textOf(body, 'access_token');
  if (status === 200 && accessToken !== '') {
    const expiresIn = body['expires_in'];
    const tokens: Tokens = {
      accessToken,
      idToken: textOf(body, 'id_token') || undefined,
      refreshToken: textOf(body, 'refresh_token') || undefined,
      expiresInMs: typeof expiresIn === 'number' && expiresIn > 0 ? expiresIn * 1_000 : undefined,
    };
    return { kind: 'tokens', tokens };
  }
  switch (body['error']) {
    case 'authorization_pending':
      return { kind: 'pending' };
    case 'slow_down':
      return { kind: 'slowDown' };
    case 'access_denied':
      return { kind: 'refused', why: 'the sign-in was refused' };
    case 'expired_token':
      return { kind: 'refused', why: 'the code has expired before anybody signed in' };
    case 'invalid_grant':
      return { kind: 'refused', why: 'the sign-in has ended there' };
    default:
      throw new SignInNeeded(`${at.token} gives no token: ${errorOf(status, body)}`);
  }
}

interface ProviderAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(
  { web, caPem, signal, settings }: Provider,
  method: 'GET' | 'POST',
  url: string,
  form?: Readonly<Record<string, string>>,
): Promise<ProviderAnswer> {
  const outcome = await web.send(
    {
      ...{ method, url },
      headers: {
        accept: 'application/json',
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form === undefined
        ? {}
        : { body: new TextEncoder().encode(new URLSearchParams(form).toString()) }),
      ...(caPem === undefined ? {} : { caPem }),
    },
    limits,
    signal,
  );
  if (signal.aborted) throw new InterruptedError('not signed in');
  if (outcome.kind !== 'answered') {
    const why = 'message' in outcome ? outcome.message : outcome.kind;
    throw new ServerUnreachable(`the identity provider ${settings.issuer} does not answer: ${why}`);
  }
  return { status: outcome.status, body: await jsonOf(outcome.body, url) };
}

async function jsonOf(
  body: AsyncIterable<Uint8Array>,
  url: string,
): Promise<Readonly<Record<string, unknown>>> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > answerBytesMax) throw new UsageError(`${url} answers more than a sign-in needs`);
    pieces.push(piece);
  }
  const value = parsedJson(new TextDecoder().decode(concat(pieces, bytes)));
  // What is no JSON says nothing that is understood here.
  return value instanceof Object ? (value as Readonly<Record<string, unknown>>) : {};
}

function concat(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function textOf(body: ProviderAnswer['body'], key: string): string {
  const value = body[key];
  return typeof value === 'string' ? value : '';
}

function secondsOf(
  body: ProviderAnswer['body'],
  key: string,
  [least, most]: readonly [number, number],
  fallback: number,
): number {
  const value = body[key];
  return typeof value === 'number' ? Math.min(most, Math.max(least, value)) : fallback;
}

/** RFC 6749 §5.2: a code, and words for people. */
function errorOf(status: number, body: ProviderAnswer['body']): string {
  const texts = [textOf(body, 'error'), textOf(body, 'error_description')].filter(Boolean);
  return texts.length === 0 ? `it answers ${status}` : clean(texts.join(': '));
}
