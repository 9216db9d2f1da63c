/**
 * A client of one registry, for pulling by digest (distribution-spec 1.1, "Pull").
 *
 * 1. A credential is shown to the registry's own origin and to its token service, to nobody to
 *    whom either redirects.
 * 2. A redirect never leads from HTTPS to plain HTTP.
 * 3. A manifest is answered only when it is what its digest names. A blob is checked by who reads
 *    it, as it comes (`verifiedBlob`).
 */
import type { WebAnswer, WebClient, WebLimits } from '@rackwright/platform';
import { type Digest, digestOf } from '../digest.ts';
import { OciError } from '../failure.ts';
import { manifestBytesMax, manifestMediaTypes } from '../manifest.ts';
import { readBody, refusalWords } from './body.ts';
import { parseChallenges } from './challenge.ts';
import type { BlobSource, OpenBlob } from './source.ts';
import { basic, fetchToken, type RegistryCredential, tokenUrl } from './token.ts';

export interface RegistryAccess {
  /** "host" or "host:port" */
  readonly registry: string;
  /** Ask without TLS. */
  readonly plainHttp: boolean;
  readonly credential: RegistryCredential | undefined;
}

export const defaultWebLimits: WebLimits = {
  answerTimeoutMs: 30_000,
  silenceMs: 30_000,
  headerBytesMax: 32 * 1024,
};

const redirectsMax = 5;
/** Docker's registry answers under another name than the one in its references. */
const servers: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };

export class RegistryClient {
  readonly #web: WebClient;
  readonly #access: RegistryAccess;
  readonly #limits: WebLimits;
  readonly #origin: string;
  /** Repository → what its requests carry. */
  readonly #authorizations = new Map<string, string>();

  constructor(web: WebClient, access: RegistryAccess, limits: WebLimits = defaultWebLimits) {
    const server = servers[access.registry] ?? access.registry;
    this.#web = web;
    this.#access = access;
    this.#limits = limits;
    this.#origin = `${access.plainHttp ? 'http' : 'https'}://${server}`;
  }

  /** The manifest or index itself: exactly the bytes that the digest names. */
  async manifest(repository: string, digest: Digest, signal?: AbortSignal): Promise<Uint8Array> {
    const answer = await this.#ask(repository, `manifests/${digest}`, manifestAccept, signal);
    if (answer.status !== 200) throw await this.#refusal(answer, `${repository}@${digest}`);
    const bytes = await readBody(answer, manifestBytesMax, 'manifest');
    if (digestOf(bytes) === digest) return bytes;
    throw new OciError('digestMismatch', `${this.#access.registry} sends another manifest`);
  }

  /** Blobs of one repository. */
  blobs(repository: string): BlobSource {
    return { open: (digest, from, signal) => this.#openBlob(repository, digest, from, signal) };
  }

  async #openBlob(
    repository: string,
    digest: Digest,
    from: number,
    signal: AbortSignal | undefined,
  ): Promise<OpenBlob> {
    const headers = from === 0 ? {} : { range: `bytes=${from}-` };
    const answer = await this.#ask(repository, `blobs/${digest}`, headers, signal);
    const start = startOf(answer, from);
    if (start === undefined) throw await this.#refusal(answer, `blob ${digest} of ${repository}`);
    return { start, chunks: answer.body, close: () => answer.close() };
  }

  /** One request with its authorization and its redirects; any final status is answered. */
  async #ask(
    repository: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<WebAnswer> {
    const url = `${this.#origin}/v2/${repository}/${path}`;
    const first = await this.#follow(url, repository, headers, signal);
    if (first.status !== 401) return first;
    const authorization = await this.#authorize(first, repository, signal);
    if (authorization === undefined) return first;
    first.close();
    this.#authorizations.set(repository, authorization);
    return this.#follow(url, repository, headers, signal);
  }

  async #follow(
    url: string,
    repository: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<WebAnswer> {
    let at = new URL(url);
    const { origin } = at;
    for (let hops = 0; hops <= redirectsMax; hops += 1) {
      const shown = at.origin === origin ? this.#authorizations.get(repository) : undefined;
      const sent = shown === undefined ? headers : { ...headers, authorization: shown };
      const answer = await this.#send(at, sent, signal);
      const { location } = answer.headers;
      if (answer.status < 300 || answer.status >= 400 || location === undefined) return answer;
      answer.close();
      at = redirected(at, location);
    }
    throw new OciError('malformed', `${this.#access.registry} redirects in a circle`);
  }

  async #send(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<WebAnswer> {
    const request = { method: 'GET', url: url.href, headers: { ...headers, ...always } } as const;
    const outcome = await this.#web.send(request, this.#limits, signal);
    switch (outcome.kind) {
      case 'answered':
        return outcome;
      case 'cancelled':
        throw new OciError('unreachable', 'given up');
      case 'noHttp':
        throw new OciError('malformed', `${url.host} speaks no HTTP here: ${outcome.message}`);
      case 'untrusted': {
        const message = `the certificate of ${url.host} is not trusted: ${outcome.message}`;
        throw new OciError('unauthorized', message);
      }
      case 'unreachable':
        throw new OciError('unreachable', `${url.host} does not answer: ${outcome.message}`);
    }
  }

  /** What the next request shall carry; undefined when nothing new can be shown. */
  async #authorize(
    answer: WebAnswer,
    repository: string,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const { credential, plainHttp } = this.#access;
    const challenges = parseChallenges(answer.headers['www-authenticate'] ?? '');
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
    if (bearer !== undefined) {
      const url = tokenUrl(bearer, repository, plainHttp);
      return `Bearer ${await fetchToken(this.#web, url, credential, this.#limits, signal)}`;
    }
    const isBasic = challenges.some(({ scheme }) => scheme === 'basic');
    if (!isBasic || credential === undefined) return undefined;
    const next = basic(credential);
    return this.#authorizations.get(repository) === next ? undefined : next;
  }

  async #refusal(answer: WebAnswer, what: string): Promise<OciError> {
    const { registry, credential } = this.#access;
    const { status } = answer;
    const words = await refusalWords(answer);
    if (status === 401 || status === 403) {
      const whom = credential === undefined ? 'without a credential' : `to ${credential.username}`;
      const message = `${registry} does not give ${what} ${whom}: ${status}${words}`;
      return new OciError('unauthorized', message);
    }
    if (status === 404) return new OciError('notFound', `${registry} has no ${what}${words}`);
    const mayPass = status === 408 || status === 429 || status >= 500;
    const message = `${registry} answers ${status} to ${what}${words}`;
    return new OciError(mayPass ? 'unreachable' : 'malformed', message);
  }
}

const always = { 'accept-encoding': 'identity', 'user-agent': 'rackwright' };
const manifestAccept = { accept: manifestMediaTypes.join(', ') };

/** Where the body of an answer begins; undefined when it is no part of what was asked for. */
export function startOf({ status, headers }: WebAnswer, from: number): number | undefined {
  if (status === 200) return 0;
  if (status !== 206 || from === 0) return undefined;
  const found = /^bytes (\d{1,15})-\d{1,15}\/(?:\d{1,15}|\*)$/.exec(headers['content-range'] ?? '');
  return found !== null && Number(found[1]) === from ? from : undefined;
}

function redirected(from: URL, location: string): URL {
  const to = URL.parse(location, from.href);
  const isWeb = to?.protocol === 'https:' || to?.protocol === 'http:';
  if (to === null || !isWeb || to.username !== '' || to.password !== '') {
    throw new OciError('malformed', `${from.host} redirects to what is no address`);
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    const message = `${from.host} redirects to ${to.host} over plain HTTP, which is not safe`;
    throw new OciError('malformed', message);
  }
  return to;
}

/** Blobs below "…/v2/blobs/sha256/HEX", as our agents serve them to runners. */
export function plainBlobs(
  web: WebClient,
  base: string,
  limits: WebLimits = defaultWebLimits,
): BlobSource {
  return {
    open: async (digest, from, signal) => {
      const url = `${base}/v2/blobs/${digest.replace(':', '/')}`;
      const headers = from === 0 ? {} : { range: `bytes=${from}-` };
      const answer = await web.send({ method: 'GET', url, headers }, limits, signal);
      if (answer.kind === 'cancelled') throw new OciError('unreachable', 'given up');
      if (answer.kind !== 'answered') throw new OciError('unreachable', answer.message);
      const start = startOf(answer, from);
      if (start !== undefined) {
        return { start, chunks: answer.body, close: () => answer.close() };
      }
      answer.close();
      const { host } = new URL(url);
      const kind = answer.status === 404 ? 'notFound' : 'unreachable';
      throw new OciError(kind, `${host} answers ${answer.status} to the blob ${digest}`);
    },
  };
}
