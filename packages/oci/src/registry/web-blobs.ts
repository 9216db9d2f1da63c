/**
 * Blobs on plain web servers: our own agents', and files that a person names by URL and SHA-256.
 *
 * 1. The digest names the content as everywhere: the server is not trusted.
 * 2. A partial file is continued only while its server reports it unchanged (ETag, If-Range). A
 *    changed file is read from its start, and its digest decides.
 */
import type { WebAnswer, WebClient, WebLimits } from '@rackwright/platform';
import { OciError } from '../failure.ts';
import { startOf } from './client.ts';
import { defaultWebLimits } from './exchange.ts';
import { answerOf, redirected, redirectsMax, refusedFor } from './outcome.ts';
import type { BlobSource } from './source.ts';
import { basic, type RegistryCredential } from './token.ts';

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
      if (answer.kind === 'cancelled') throw new OciError('cancelled', 'given up');
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

/** A file on a web server. */
export interface WebFileAccess {
  readonly url: string;
  /** Shown to the URL's own origin, and never to the target of a redirect. */
  readonly credential: RegistryCredential | undefined;
  /** Authorities in PEM that are trusted for it, beside those of this machine. */
  readonly caPem?: string;
  /** Internal addresses that it may be at, or redirect to (`WebRequest.internal`). */
  readonly internal?: readonly string[];
}

/** A file that a person names by its URL; its reader verifies the digest. */
export class WebFile implements BlobSource {
  readonly #web: WebClient;
  readonly #access: WebFileAccess;
  readonly #limits: WebLimits;
  /** The server's latest ETag; only a strong one identifies its bytes. */
  #etag: string | undefined;

  /** Throws when the URL is not usable. */
  constructor(web: WebClient, access: WebFileAccess, limits: WebLimits = defaultWebLimits) {
    const url = URL.parse(access.url);
    if (url === null || !['http:', 'https:'].includes(url.protocol)) {
      throw new OciError('malformed', 'the image is at no URL that begins with http: or https:');
    }
    if (url.username !== '' || url.password !== '') {
      throw new OciError('malformed', 'the URL of the image holds a user; name a credential');
    }
    this.#web = web;
    this.#access = access;
    this.#limits = limits;
  }

  /** The length of the file. */
  async sizeBytes(signal?: AbortSignal): Promise<number> {
    let answer = await this.#ask('HEAD', {}, signal);
    answer.close();
    if (isOfHead(answer.status)) {
      answer = await this.#ask('GET', {}, signal);
      answer.close();
    }
    if (answer.status !== 200) throw this.#refusal(answer);
    const length = answer.headers['content-length'] ?? '';
    if (/^\d{1,15}$/.test(length)) return Number(length);
    throw new OciError('refused', `${this.#host()} does not say how long the image is`);
  }

  async open(_: unknown, from: number, signal: AbortSignal | undefined) {
    const condition = this.#etag === undefined ? {} : { 'if-range': this.#etag };
    const headers = from === 0 ? {} : { range: `bytes=${from}-`, ...condition };
    let answer = await this.#ask('GET', headers, signal);
    if (answer.status === 416) {
      answer.close();
      answer = await this.#ask('GET', {}, signal);
    }
    const start = startOf(answer, from);
    if (start === undefined) {
      answer.close();
      throw this.#refusal(answer);
    }
    const { etag } = answer.headers;
    this.#etag = etag?.startsWith('"') === true ? etag : undefined;
    const opened = answer;
    return { start, chunks: opened.body, close: () => opened.close() };
  }

  async #ask(
    method: 'GET' | 'HEAD',
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<WebAnswer> {
    const { url, credential, caPem, internal } = this.#access;
    let at = new URL(url);
    const { origin } = at;
    for (let hops = 0; hops <= redirectsMax; hops += 1) {
      const isOwn = credential !== undefined && at.origin === origin;
      const shown = isOwn ? { authorization: basic(credential) } : {};
      const request = {
        ...{ method, url: at.href, headers: { ...headers, ...shown, ...plainly } },
        ...(caPem === undefined ? {} : { caPem }),
        ...(internal === undefined ? {} : { internal }),
      };
      const answer = answerOf(await this.#web.send(request, this.#limits, signal), at.host);
      const { location } = answer.headers;
      const isRedirect = answer.status > 300 && answer.status < 400 && answer.status !== 304;
      if (!isRedirect || location === undefined) return answer;
      answer.close();
      at = redirected(at, location);
    }
    throw new OciError('refused', `${this.#host()} redirects in a circle`);
  }

  #refusal({ status, headers }: WebAnswer): OciError {
    const message = `${this.#host()} answers ${status} to the image`;
    if (status === 401 || status === 403) return new OciError('unauthorized', message);
    if (status === 404 || status === 410) return new OciError('notFound', message);
    return refusedFor(status, headers, message);
  }

  #host(): string {
    return new URL(this.#access.url).host;
  }
}

/** Whether a GET may be answered otherwise: a signed URL is often signed for that alone. */
function isOfHead(status: number): boolean {
  const ofAny = [404, 407, 410, 429].includes(status);
  return status === 501 || (status >= 400 && status < 500 && !ofAny);
}

const plainly = { 'accept-encoding': 'identity', 'user-agent': 'rackwright' };
