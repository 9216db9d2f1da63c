/**
 * Requests to one registry: credentials, redirects, and the meaning of refusals.
 *
 * 1. A credential is shown to the registry's own origin, and to a token service that is there too
 *    or that the configuration has named for it. The target of a redirect never gets it, and an
 *    authentication challenge from such a target is ignored.
 * 2. A redirect never leads from HTTPS to plain HTTP.
 * 3. After a refused authorization a new one is requested once, and no more.
 */
import type { WebAnswer, WebClient, WebFloor, WebLimits, WebRequest } from '@rackwright/platform';
import { OciError } from '../failure.ts';
import { refusalText } from './body.ts';
import { parseChallenges } from './challenge.ts';
import { answerOf, redirected, redirectsMax, refusedFor } from './outcome.ts';
import { basic, fetchToken, type RegistryCredential, tokenUrl } from './token.ts';

export interface RegistryAccess {
  /** "host" or "host:port" */
  readonly registry: string;
  /** Ask without TLS. */
  readonly plainHttp: boolean;
  readonly credential: RegistryCredential | undefined;
  /** "host" or "host:port" of the token service that may be shown the credential as well. */
  readonly tokenService?: string;
  /** Internal addresses that it and all to which it leads may be at (`WebRequest.internal`). */
  readonly internal?: readonly string[];
  /** Authorities in PEM that are trusted for this registry, beside those of this machine. */
  readonly caPem?: string;
}

export const defaultWebLimits: WebLimits = {
  answerTimeoutMs: 30_000,
  silenceMs: 30_000,
  headerBytesMax: 32 * 1024,
  floor: { bytes: 64 * 1024, everyMs: 60_000 },
};
/** Every answer but a blob is small: it arrives whole in this time. */
const small: WebFloor = { bytes: Number.POSITIVE_INFINITY, everyMs: 60_000 };

/** Docker's registry answers under another name than the one in its references. */
const servers: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };
/** Its token service, which everybody knows. */
const tokenServices: Readonly<Record<string, string>> = { 'docker.io': 'auth.docker.io' };
const always = { 'accept-encoding': 'identity', 'user-agent': 'rackwright' };

/** The action on a repository, as tokens name it. */
export type RegistryScope = 'pull' | 'pull,push';

/** One request below "/v2/REPOSITORY/", or to where an answer has pointed. */
export interface RegistryAsk {
  readonly method: WebRequest['method'];
  readonly repository: string;
  /** Below the repository; or a whole URL, or a path relative to the registry. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly scope: RegistryScope;
  /** The answer may take as long as it makes progress; others are small. */
  readonly isBlob?: true;
  readonly signal: AbortSignal | undefined;
}

/** The answer, and its sender: the registry, or the target of its redirect. */
export interface RegistryAnswer extends WebAnswer {
  readonly from: URL;
}

/** Asks one registry. */
export class RegistryExchange {
  readonly #web: WebClient;
  readonly #access: RegistryAccess;
  readonly #limits: WebLimits;
  readonly #smallLimits: WebLimits;
  readonly #origin: string;
  /** Scope and repository → the Authorization header of its requests. */
  readonly #authorizations = new Map<string, string>();

  constructor(web: WebClient, access: RegistryAccess, limits: WebLimits) {
    const server = servers[access.registry] ?? access.registry;
    this.#web = web;
    this.#access = access;
    this.#limits = limits;
    this.#smallLimits = { ...limits, floor: small };
    this.#origin = `${access.plainHttp ? 'http' : 'https'}://${server}`;
  }

  /** The name in references. */
  get registry(): string {
    return this.#access.registry;
  }

  /** One request with its authorization and its redirects; any final status is answered. */
  async ask(ask: RegistryAsk): Promise<RegistryAnswer> {
    const url = this.#urlOf(ask);
    const first = await this.#follow(url, ask);
    if (first.status !== 401 || !this.#isOwn(first.from)) return first;
    const authorization = await this.#authorize(first, ask);
    if (authorization === undefined) return first;
    first.close();
    this.#authorizations.set(keyOf(ask), authorization);
    return this.#follow(url, ask);
  }

  /** The error that an answer is; its body is read for the registry's words. */
  async refusal(answer: RegistryAnswer, action: string): Promise<OciError> {
    const { registry, credential } = this.#access;
    const { status, headers, from } = answer;
    const text = await refusalText(answer);
    const isOwn = this.#isOwn(from);
    const server = isOwn ? registry : `${from.host}, to which ${registry} redirects,`;
    if (isOwn && (status === 401 || status === 403)) {
      const whom = credential === undefined ? 'without a credential' : `to ${credential.username}`;
      const message = `${server} does not give ${action} ${whom}: ${status}${text}`;
      return new OciError('unauthorized', message);
    }
    if (status === 404) return new OciError('notFound', `${server} has no ${action}${text}`);
    return refusedFor(status, headers, `${server} answers ${status} to ${action}${text}`);
  }

  #urlOf({ repository, path }: RegistryAsk): URL {
    if (!path.startsWith('/') && !/^https?:/.test(path)) {
      return new URL(`${this.#origin}/v2/${repository}/${path}`);
    }
    const base = new URL(this.#origin);
    return redirected(base, path);
  }

  async #follow(url: URL, ask: RegistryAsk): Promise<RegistryAnswer> {
    let at = url;
    for (let hops = 0; hops <= redirectsMax; hops += 1) {
      const answer = await this.#send(at, ask);
      const { location } = answer.headers;
      const isRead = ask.method === 'GET' || ask.method === 'HEAD';
      const isRedirect = answer.status > 300 && answer.status < 400 && answer.status !== 304;
      if (!isRead || !isRedirect || location === undefined) return { ...answer, from: at };
      answer.close();
      at = redirected(at, location);
    }
    throw new OciError('refused', `${this.#access.registry} redirects in a circle`);
  }

  async #send(url: URL, ask: RegistryAsk): Promise<WebAnswer> {
    const shown = this.#isOwn(url) ? this.#authorizations.get(keyOf(ask)) : undefined;
    const authorization = shown === undefined ? {} : { authorization: shown };
    const { method, body } = ask;
    const { caPem, internal } = this.#access;
    const request = {
      ...{ method, url: url.href, headers: { ...ask.headers, ...authorization, ...always } },
      ...(body === undefined ? {} : { body }),
      ...(caPem === undefined ? {} : { caPem }),
      ...(internal === undefined ? {} : { internal }),
    };
    const limits = ask.isBlob === true ? this.#limits : this.#smallLimits;
    return answerOf(await this.#web.send(request, limits, ask.signal), url.host);
  }

  #isOwn({ origin }: URL): boolean {
    return origin === new URL(this.#origin).origin;
  }

  /** The Authorization of the next request; undefined when there is no new one. */
  async #authorize(answer: WebAnswer, ask: RegistryAsk): Promise<string | undefined> {
    const { credential, plainHttp, caPem, internal } = this.#access;
    const challenges = parseChallenges(answer.headers['www-authenticate'] ?? '');
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
    if (bearer !== undefined) {
      const url = tokenUrl(bearer, ask.repository, ask.scope, plainHttp);
      if (credential !== undefined) this.#checkTokenService(new URL(url));
      const { signal } = ask;
      const asking = { url, credential, caPem, internal, limits: this.#smallLimits, signal };
      return `Bearer ${await fetchToken(this.#web, asking)}`;
    }
    const isBasic = challenges.some(({ scheme }) => scheme === 'basic');
    if (!isBasic || credential === undefined) return undefined;
    const next = basic(credential);
    return this.#authorizations.get(keyOf(ask)) === next ? undefined : next;
  }

  /** Invariant 1. Throws when the credential is not for this token service. */
  #checkTokenService(url: URL): void {
    const { registry, tokenService = tokenServices[registry] } = this.#access;
    if (this.#isOwn(url)) return;
    if (tokenService !== undefined) {
      if (url.origin === new URL(`${url.protocol}//${tokenService}`).origin) return;
    }
    const message = `${registry} wants its credential to be shown to the token service ${url.host}`;
    throw new OciError('unauthorized', `${message}, which is not named for it`);
  }
}

function keyOf({ scope, repository }: RegistryAsk): string {
  return `${scope} ${repository}`;
}
