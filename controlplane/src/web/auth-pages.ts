/**
 * The pages by which a browser signs in and out.
 *
 * | page | does |
 * |---|---|
 * | `GET /auth/options` | lists the ways to sign in |
 * | `POST /auth/token` | opens a sign-in for the token in `{"token": "..."}` |
 * | `GET /auth/sign-in?return=PATH` | redirects to the identity provider |
 * | `GET /auth/callback` | the provider's redirect: opens a sign-in, redirects to PATH |
 * | `POST /auth/sign-out` | ends the sign-in |
 *
 * A POST needs the origin of this server. An error on the way back from the identity provider
 * redirects to `/sign-in?error=REASON`: a person reads it, not a program.
 */
import {
  ApiFailure,
  invalidArgument,
  type PageRequest,
  type PageResponse,
} from '@rackwright/messages';
import {
  type Browsers,
  beginningCookie,
  beginningSeconds,
  callbackPath,
  type OpenedSignIn,
  signInCookie,
} from '../access/index.ts';
import { type AuditTrail, identifyAudited } from '../audit/index.ts';
import { jsonPage, noContent, textPage, wrongMethod } from './answers.ts';

export interface AuthPages {
  readonly browsers: Browsers;
  readonly audit: AuditTrail;
  /** Wall time in milliseconds. */
  readonly nowMs: () => number;
}

type Page = (request: PageRequest, pages: AuthPages) => PageResponse | Promise<PageResponse>;

const bodyBytesMax = 20 * 1024;
/** The lifetime of a cookie to delete. */
const gone = 0;

const pages: Readonly<Record<string, { readonly method: 'GET' | 'POST'; readonly page: Page }>> = {
  '/auth/options': { method: 'GET', page: options },
  '/auth/token': { method: 'POST', page: byToken },
  '/auth/sign-in': { method: 'GET', page: begin },
  [callbackPath]: { method: 'GET', page: end },
  '/auth/sign-out': { method: 'POST', page: signOut },
};

/** Undefined: another page. */
export function authPage(
  request: PageRequest,
  parts: AuthPages,
): PageResponse | Promise<PageResponse> | undefined {
  const found = Object.hasOwn(pages, request.path) ? pages[request.path] : undefined;
  if (found === undefined) return undefined;
  return request.method === found.method ? found.page(request, parts) : wrongMethod(found.method);
}

function options(_request: PageRequest, { browsers }: AuthPages): PageResponse {
  return jsonPage({ token: true, issuer: browsers.issuer ?? null });
}

async function byToken(request: PageRequest, parts: AuthPages): Promise<PageResponse> {
  const { context } = request;
  const opened = await identifyAudited(
    async () => parts.browsers.byToken(context, await tokenIn(request)),
    context,
    parts.audit,
  );
  const { name, expireMs } = opened;
  const expireTime = new Date(expireMs).toISOString();
  return {
    ...jsonPage({ expireTime }),
    headers: withCookies(jsonPage({}), [kept(opened, name, parts)]),
  };
}

async function tokenIn(request: PageRequest): Promise<string> {
  const type = request.context.header('content-type') ?? '';
  const body = await request.body(bodyBytesMax);
  try {
    const { token } = JSON.parse(body.toString('utf8')) as { token?: unknown };
    if (typeof token === 'string' && /^application\/json\b/i.test(type)) return token.trim();
  } catch {
    // The parser's message would repeat the sent text.
  }
  const description = 'is missing; send {"token": "..."} as application/json';
  throw invalidArgument([{ field: 'token', description }]);
}

async function begin(request: PageRequest, { browsers }: AuthPages): Promise<PageResponse> {
  const returnTo = request.query.get('return') ?? '/';
  try {
    const { location, cookie } = await browsers.begin(request.context, returnTo);
    const beginning = cookieText(beginningCookie, cookie, 'Lax', beginningSeconds);
    return leading(location, [beginning]);
  } catch (error) {
    return failed(error);
  }
}

async function end(request: PageRequest, parts: AuthPages): Promise<PageResponse> {
  const { context, query } = request;
  const over = cookieText(beginningCookie, '', 'Lax', gone);
  try {
    const { opened, returnTo } = await identifyAudited(
      () => parts.browsers.end(context, query),
      context,
      parts.audit,
    );
    return leading(returnTo, [over, kept(opened, opened.name, parts)]);
  } catch (error) {
    return failed(error, [over]);
  }
}

/** Only the reason: an address made by somebody else puts no text into this page. */
function failed(error: unknown, cookies: readonly string[] = []): PageResponse {
  if (!(error instanceof ApiFailure)) throw error;
  return leading(`/sign-in?error=${encodeURIComponent(error.error.reason)}`, cookies);
}

/** The browser drops the sign-in even if the store is unavailable: then only its expiry ends it. */
async function signOut({ context }: PageRequest, { browsers }: AuthPages): Promise<PageResponse> {
  const over = cookieText(signInCookie, '', 'Strict', gone);
  try {
    await browsers.out(context);
    return { ...noContent, headers: withCookies(noContent, [over]) };
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.error.kind !== 'unavailable') throw error;
    const page = textPage(503, 'This browser is signed out; the store does not know it yet.');
    return { ...page, headers: withCookies(page, [over]) };
  }
}

function kept({ expireMs }: OpenedSignIn, name: string, { nowMs }: AuthPages): string {
  const lifeSeconds = Math.max(0, Math.floor((expireMs - nowMs()) / 1_000));
  return cookieText(signInCookie, name, 'Strict', lifeSeconds);
}

function cookieText(
  name: string,
  value: string,
  sameSite: 'Strict' | 'Lax',
  lifeSeconds: number,
): string {
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=${sameSite}; Max-Age=${lifeSeconds}`;
}

function leading(location: string, cookies: readonly string[]): PageResponse {
  const headers = { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };
  return { status: 303, headers: { ...headers, 'set-cookie': cookies } };
}

function withCookies({ headers }: PageResponse, cookies: readonly string[]) {
  return { ...headers, 'set-cookie': cookies };
}
