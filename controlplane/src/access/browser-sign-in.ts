/**
 * Signing in at the identity provider by a browser: the authorization code flow of OpenID Connect
 * with PKCE (RFC 7636). The code is exchanged here; no token of the provider reaches the browser.
 *
 * Invariants:
 * 1. The state of an unfinished sign-in is kept in the browser alone, sealed as secrets are. An
 *    abandoned sign-in costs no storage, and every replica can finish a sign-in that another one
 *    began.
 * 2. A sign-in finishes only in the browser that began it (its cookie), with the same state, nonce
 *    and verifier, and within minutes.
 * 3. At most `exchangesMax` codes are exchanged at once: invented codes cost the provider and this
 *    server no more than that.
 * 4. After the sign-in the browser is redirected to a page of this server, and to no other address.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  ApiFailure,
  type CallContext,
  unauthenticated,
  unavailable,
  store as wire,
} from '@rackwright/messages';
import type { Clock, Random, WebClient } from '@rackwright/platform';
import { SecretError, type Secrets } from '../secrets/index.ts';
import { principalOfIdToken } from './oidc.ts';
import type { OidcBrowserConfig, OidcConfig } from './oidc-config.ts';
import type { OidcEndpoints, OidcKeys } from './oidc-keys.ts';
import type { Principal } from './principal.ts';
import { cookieOf } from './sign-ins.ts';

/** Also sent when the provider redirects the browser back: a navigation from another site. */
export const beginningCookie = '__Host-rackwright-sign-in';
/** How long a sign-in may take. */
export const beginningSeconds = 600;

const limits = { answerTimeoutMs: 10_000, silenceMs: 5_000, headerBytesMax: 16 * 1024 };
const answerBytesMax = 128 * 1024;
const secretBytes = 32;
/** What the state is sealed for: data sealed for another purpose does not open here. */
const purpose = 'browser sign-in';
const sealedSchema = wire.SealedValueSchema;
const codeCharsMax = 4_096;
/** Invariant 3. A provider that responds takes a fraction of a second for each exchange. */
export const exchangesMax = 32;
const busyRetryAfterMs = 1_000;
const pathCharsMax = 1_024;
const hostShape = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?$/;

/** Where the provider redirects to. */
export const callbackPath = '/auth/callback';

/** Seals data that every replica can open. */
export type SignInSealer = Pick<Secrets, 'sealBytes' | 'openBytes'>;

export interface BrowserSignInParts {
  readonly config: OidcConfig;
  readonly browser: OidcBrowserConfig;
  /** The secret of a confidential client; undefined: the client has none. */
  readonly clientSecret: () => Promise<string | undefined>;
  readonly keys: OidcKeys;
  readonly web: WebClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly secrets: SignInSealer;
}

/** What the browser has to do next. */
export interface SignInStart {
  readonly location: string;
  /** The value of `beginningCookie`. */
  readonly cookie: string;
}

interface Beginning {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly returnTo: string;
  readonly callback: string;
  readonly expireMs: number;
}

/** See the header. */
export class BrowserSignIn {
  readonly #parts: BrowserSignInParts;
  #exchanges = 0;

  constructor(parts: BrowserSignInParts) {
    this.#parts = parts;
  }

  get issuer(): string {
    return this.#parts.config.issuer;
  }

  /** Throws when the provider cannot be reached, or has no endpoints for sign-in. */
  async begin(context: CallContext, returnTo: string): Promise<SignInStart> {
    const { browser, clock } = this.#parts;
    const { authorization } = await this.#endpoints();
    const [state, nonce, verifier] = [this.#draw(), this.#draw(), this.#draw()];
    const callback = callbackOf(context);
    const url = new URL(authorization);
    const parameters = {
      ...{ response_type: 'code', client_id: browser.clientId, redirect_uri: callback },
      ...{ scope: browser.scopes.join(' '), state, nonce, code_challenge_method: 'S256' },
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    const expireMs = clock.nowMs() + beginningSeconds * 1_000;
    const beginning = { state, nonce, verifier, callback, expireMs };
    const cookie = this.#seal({ ...beginning, returnTo: ownPath(returnTo) });
    return { location: url.href, cookie };
  }

  /** Returns who has signed in, by the provider's redirect, and the page to go to next. */
  async end(
    context: CallContext,
    query: URLSearchParams,
  ): Promise<{ readonly principal: Principal; readonly returnTo: string }> {
    const beginning = this.#open(cookieOf(context, beginningCookie) ?? '');
    const { config, clock, keys, browser } = this.#parts;
    if (beginning === undefined || beginning.expireMs <= clock.nowMs()) throw notBegun();
    if (!isSame(query.get('state') ?? '', beginning.state)) throw notBegun();
    const issuer = query.get('iss');
    const code = query.get('code') ?? '';
    if (issuer !== null && issuer !== config.issuer) throw notBegun();
    if (query.has('error') || code === '' || code.length > codeCharsMax) throw this.#refused();
    if (this.#exchanges >= exchangesMax) throw busy();
    this.#exchanges += 1;
    const token = await this.#exchange(code, beginning).finally(() => (this.#exchanges -= 1));
    const { clientId } = browser;
    const { nonce, returnTo } = beginning;
    const shown = { token, clientId, nonce };
    return { principal: await principalOfIdToken(config, clock, keys, shown), returnTo };
  }

  async #exchange(code: string, { verifier, callback }: Beginning): Promise<string> {
    const { browser, web } = this.#parts;
    const clientSecret = await this.#parts.clientSecret();
    const { token: url } = await this.#endpoints();
    const form = new URLSearchParams({
      ...{ grant_type: 'authorization_code', code, redirect_uri: callback },
      ...{ code_verifier: verifier, client_id: browser.clientId },
    });
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      ...(clientSecret === undefined
        ? {}
        : { authorization: basic(browser.clientId, clientSecret) }),
    };
    const body = Buffer.from(form.toString());
    const answer = await web.send({ method: 'POST', url, headers, body }, limits);
    if (answer.kind !== 'answered') throw this.#away();
    try {
      const text = await whole(answer.body);
      if (answer.status >= 500) throw this.#away();
      if (answer.status !== 200) throw this.#refused();
      const { id_token: idToken } = JSON.parse(text) as { id_token?: unknown };
      if (typeof idToken === 'string') return idToken;
      throw this.#refused();
    } catch (error) {
      if (error instanceof ApiFailure) throw error;
      throw this.#away();
    } finally {
      answer.close();
    }
  }

  async #endpoints(): Promise<OidcEndpoints> {
    const endpoints = await this.#parts.keys.endpoints();
    if (endpoints !== undefined) return endpoints;
    throw unavailable(
      'ISSUER_WITHOUT_BROWSER',
      `The identity provider ${this.issuer} names no endpoints for signing in by a browser.`,
    );
  }

  #draw(): string {
    return Buffer.from(this.#parts.random.bytes(secretBytes)).toString('base64url');
  }

  #seal(beginning: Beginning): string {
    const plain = Buffer.from(JSON.stringify(beginning));
    try {
      const sealed = this.#parts.secrets.sealBytes(purpose, plain);
      return Buffer.from(toBinary(sealedSchema, sealed)).toString('base64url');
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      throw unavailable(
        'SECRETS_UNAVAILABLE',
        'The control plane cannot begin a sign-in: its secrets key is not there. Use a token.',
        undefined,
        error,
      );
    }
  }

  /** Undefined: the cookie was not sealed here. */
  #open(cookie: string): Beginning | undefined {
    try {
      const sealed = fromBinary(sealedSchema, Buffer.from(cookie, 'base64url'));
      const opened = this.#parts.secrets.openBytes(purpose, sealed);
      return JSON.parse(Buffer.from(opened).toString('utf8')) as Beginning;
    } catch {
      // Any client can send such a cookie. The caller refuses it.
      return undefined;
    }
  }

  #refused(): ApiFailure {
    return unauthenticated(
      'SIGN_IN_REFUSED',
      `The identity provider ${this.issuer} did not let you in. Try again, or use a token.`,
    );
  }

  #away(): ApiFailure {
    return unavailable(
      'ISSUER_UNAVAILABLE',
      `The identity provider ${this.issuer} does not answer as it should. ` +
        'Try again, or use a token.',
    );
  }
}

function notBegun(): ApiFailure {
  return unauthenticated(
    'SIGN_IN_NOT_BEGUN',
    'This sign-in was not begun in this browser, or too long ago. Begin again.',
  );
}

function busy(): ApiFailure {
  return unavailable(
    'SIGN_IN_BUSY',
    'Too many sign-ins are being completed at once. Sign in again in a moment.',
    busyRetryAfterMs,
  );
}

function callbackOf(context: CallContext): string {
  const host = context.header('host') ?? '';
  if (hostShape.test(host)) return `https://${host}${callbackPath}`;
  throw unauthenticated(
    'HOST_WRONG',
    'The address of this page is none that one can come back to.',
  );
}

/** Invariant 4: a path of this server. Browsers read "//" and "/\" as the start of another host. */
function ownPath(path: string): string {
  const isOwn = /^\/(?![/\\])[\x21-\x7e]*$/.test(path) && path.length <= pathCharsMax;
  return isOwn ? path : '/';
}

/** RFC 6749 §2.3.1. */
function basic(id: string, secret: string): string {
  const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function isSame(shown: string, expected: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

async function whole(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.byteLength;
    if (bytes > answerBytesMax) throw new Error('the answer is too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
