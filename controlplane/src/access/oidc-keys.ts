/**
 * The signing keys of an identity provider: found by its discovery document, cached, and fetched
 * again when they are old or a key is missing.
 *
 * Invariants:
 * 1. Fetched keys stay in use while the provider is unreachable, for `staleHoursMax`. After that,
 *    and before the first fetch, every token is refused with a reason.
 * 2. Tokens with unknown keys cause at most one fetch in `refetchAfterMs`.
 * 3. One fetch at a time; time and size of each are bounded, and no redirect is followed.
 */
import { type ApiFailure, unavailable } from '@rackwright/messages';
import { type Clock, errorText, type Log, type WebClient } from '@rackwright/platform';
import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose';

/** Keys of this age are fetched again, while they stay in use. */
const freshMs = 600_000;
const staleHoursMax = 24;
const hourMs = 3_600_000;
const refetchAfterMs = 30_000;
const bodyBytesMax = 256 * 1024;
const keysMax = 100;
const limits = { answerTimeoutMs: 5_000, silenceMs: 5_000, headerBytesMax: 16 * 1024 };

/** Where a browser signs in, and where its code is exchanged. */
export interface OidcEndpoints {
  readonly authorization: string;
  readonly token: string;
}

interface LoadedKeys {
  readonly keys: JWTVerifyGetKey;
  /** Undefined: the provider names no usable endpoints. */
  readonly endpoints: OidcEndpoints | undefined;
}

interface FetchedKeys extends LoadedKeys {
  readonly atMs: number;
}

/** See the header. */
export class OidcKeys {
  readonly #issuer: string;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  readonly #web: WebClient;
  #fetched: FetchedKeys | undefined;
  #underWay: Promise<void> | undefined;
  #triedMs = Number.NEGATIVE_INFINITY;
  /** Why the last fetch failed; undefined: it did not. */
  #trouble: { readonly text: string } | undefined;

  constructor(issuer: string, deps: { readonly clock: Clock; readonly log: Log }, web: WebClient) {
    this.#issuer = issuer;
    this.#deps = deps;
    this.#web = web;
  }

  /** The known keys. Throws `unavailable` when there are none (invariant 1). */
  async keys(): Promise<JWTVerifyGetKey> {
    return (await this.#current()).keys;
  }

  /** Its endpoints, likewise. Undefined: it has none for sign-in by a browser. */
  async endpoints(): Promise<OidcEndpoints | undefined> {
    return (await this.#current()).endpoints;
  }

  async #current(): Promise<FetchedKeys> {
    const nowMs = this.#deps.clock.nowMs();
    const ageMs = nowMs - (this.#fetched?.atMs ?? Number.NEGATIVE_INFINITY);
    if (this.#fetched !== undefined && ageMs < staleHoursMax * hourMs) {
      if (ageMs > freshMs) void this.#fetch();
      return this.#fetched;
    }
    await this.#fetch();
    if (this.#fetched !== undefined && this.#fetched.atMs >= nowMs) return this.#fetched;
    throw this.#away();
  }

  /** The keys after another fetch, if one is due; undefined when there was none. */
  async refetched(): Promise<JWTVerifyGetKey | undefined> {
    const before = this.#fetched;
    await this.#fetch();
    return this.#fetched === before ? undefined : this.#fetched?.keys;
  }

  /** A possible reason for a missing key: the last fetch failed. */
  trouble(): ApiFailure | undefined {
    return this.#trouble === undefined ? undefined : this.#away();
  }

  #away(): ApiFailure {
    const why = this.#trouble?.text ?? 'its last answer is too old';
    return unavailable(
      'ISSUER_UNAVAILABLE',
      `The identity provider ${this.#issuer} does not tell its keys (${why}), so that ` +
        'its tokens cannot be checked now. Try again, or use a token of this control plane.',
      refetchAfterMs,
    );
  }

  /** Invariants 2 and 3. Never rejects. */
  #fetch(): Promise<void> {
    if (this.#underWay !== undefined) return this.#underWay;
    const nowMs = this.#deps.clock.nowMs();
    if (Math.abs(nowMs - this.#triedMs) < refetchAfterMs) return Promise.resolve();
    this.#triedMs = nowMs;
    this.#underWay = this.#load().then(
      (loaded) => {
        this.#fetched = { ...loaded, atMs: this.#deps.clock.nowMs() };
        this.#trouble = undefined;
        this.#underWay = undefined;
      },
      (error: unknown) => {
        this.#trouble = { text: errorText(error) };
        this.#underWay = undefined;
        const fields = { issuer: this.#issuer };
        this.#deps.log.warn(
          fields,
          'the keys of the identity provider could not be fetched',
          error,
        );
      },
    );
    return this.#underWay;
  }

  async #load(): Promise<LoadedKeys> {
    const base = this.#issuer.replace(/\/$/, '');
    const document = await this.#read(`${base}/.well-known/openid-configuration`);
    if (document['issuer'] !== this.#issuer) {
      throw new Error(`its discovery document is of ${JSON.stringify(document['issuer'])}`);
    }
    const { jwks_uri: address } = document;
    if (typeof address !== 'string' || URL.parse(address)?.protocol !== 'https:') {
      throw new Error('its discovery document names no https address of keys');
    }
    const { keys } = await this.#read(address);
    if (!Array.isArray(keys) || keys.length > keysMax) {
      throw new Error(`its key set has no list of at most ${keysMax} keys`);
    }
    // A shared secret cannot be a public key.
    const usable = keys.filter((key) => (key as { kty?: unknown } | null)?.kty !== 'oct');
    return { keys: createLocalJWKSet({ keys: usable }), endpoints: endpointsIn(document) };
  }

  async #read(url: string): Promise<Readonly<Record<string, unknown>>> {
    const headers = { accept: 'application/json' };
    const answer = await this.#web.send({ method: 'GET', url, headers }, limits);
    if (answer.kind !== 'answered') {
      throw new Error('message' in answer ? answer.message : answer.kind);
    }
    const parts: Uint8Array[] = [];
    let bytes = 0;
    try {
      if (answer.status !== 200) throw new Error(`it answered ${answer.status} for ${url}`);
      for await (const part of answer.body) {
        bytes += part.byteLength;
        if (bytes > bodyBytesMax) throw new Error(`it sent more than ${bodyBytesMax} bytes`);
        parts.push(part);
      }
    } finally {
      answer.close();
    }
    const parsed: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
    if (typeof parsed === 'object' && parsed !== null) return { ...parsed };
    throw new Error(`${url} is no JSON object`);
  }
}

function endpointsIn(document: Readonly<Record<string, unknown>>): OidcEndpoints | undefined {
  const { authorization_endpoint: authorization, token_endpoint: token } = document;
  if (!isHttps(authorization) || !isHttps(token)) return undefined;
  return { authorization, token };
}

function isHttps(url: unknown): url is string {
  return typeof url === 'string' && URL.parse(url)?.protocol === 'https:';
}
