/**
 * A client of one registry, for pulling (distribution-spec 1.1, "Pull").
 *
 * 1. A manifest is returned only when its digest is the requested one. The reader of a blob
 *    verifies it while it arrives (`verifiedBlob`).
 * 2. The digest of a tag is the hash of the received manifest, never a header alone.
 */
import {
  parseContentRange,
  type WebAnswer,
  type WebClient,
  type WebLimits,
} from '@rackwright/platform';
import { type Digest, digestOf, parseDigest } from '../digest.ts';
import { OciError } from '../failure.ts';
import { manifestBytesMax, manifestMediaTypes } from '../manifest.ts';
import { readBody } from './body.ts';
import {
  defaultWebLimits,
  type RegistryAccess,
  type RegistryAnswer,
  RegistryExchange,
} from './exchange.ts';
import type { BlobSource, OpenBlob } from './source.ts';

/** The present target of a tag. */
export type ResolvedTag =
  | { readonly kind: 'unchanged' }
  /** `bytes`: the manifest or index of that digest. */
  | { readonly kind: 'found'; readonly digest: Digest; readonly bytes: Uint8Array };

/** Somebody to pull from by digest. */
export interface Pulling {
  /** The manifest or index itself: exactly the bytes that the digest names. */
  manifest(repository: string, digest: Digest, signal?: AbortSignal): Promise<Uint8Array>;
  /** Blobs of one repository. */
  blobs(repository: string): BlobSource;
}

export class RegistryClient implements Pulling {
  readonly #exchange: RegistryExchange;

  constructor(web: WebClient, access: RegistryAccess, limits: WebLimits = defaultWebLimits) {
    this.#exchange = new RegistryExchange(web, access, limits);
  }

  async manifest(repository: string, digest: Digest, signal?: AbortSignal): Promise<Uint8Array> {
    const answer = await this.#manifest('GET', repository, digest, signal);
    const bytes = await this.#readManifest(answer, `${repository}@${digest}`);
    if (digestOf(bytes) === digest) return bytes;
    throw new OciError('digestMismatch', `${this.#exchange.registry} sends another manifest`);
  }

  /**
   * The digest that `tag` names; `known` is the one that it named before. Asks without a body
   * first, so that an unchanged tag costs next to nothing.
   */
  async resolve(
    repository: string,
    tag: string,
    known?: Digest,
    signal?: AbortSignal,
  ): Promise<ResolvedTag> {
    const name = `${repository}:${tag}`;
    const head = await this.#manifest('HEAD', repository, tag, signal, known);
    head.close();
    if (head.status === 304 && known !== undefined) return { kind: 'unchanged' };
    if (head.status !== 200 && !headUnknown.has(head.status)) {
      throw await this.#exchange.refusal(head, name);
    }
    const announced = head.status === 200 ? told256(head) : undefined;
    if (announced !== undefined && announced === known) return { kind: 'unchanged' };
    if (announced !== undefined) {
      return {
        kind: 'found',
        digest: announced,
        bytes: await this.manifest(repository, announced, signal),
      };
    }
    const answer = await this.#manifest('GET', repository, tag, signal);
    const bytes = await this.#readManifest(answer, name);
    const digest = digestOf(bytes);
    const meant = told256(answer) ?? digest;
    if (meant !== digest) {
      const { registry } = this.#exchange;
      throw new OciError('digestMismatch', `${registry} sends ${digest} and calls it ${meant}`);
    }
    return digest === known ? { kind: 'unchanged' } : { kind: 'found', digest, bytes };
  }

  blobs(repository: string): BlobSource {
    return { open: (digest, from, signal) => this.#openBlob(repository, digest, from, signal) };
  }

  #manifest(
    method: 'GET' | 'HEAD',
    repository: string,
    name: string,
    signal: AbortSignal | undefined,
    known?: Digest,
  ): Promise<RegistryAnswer> {
    const condition = known === undefined ? {} : { 'if-none-match': `"${known}"` };
    return this.#exchange.ask({
      ...{ method, repository, path: `manifests/${name}`, scope: 'pull', signal },
      headers: { accept: manifestMediaTypes.join(', '), ...condition },
    });
  }

  async #readManifest(answer: RegistryAnswer, name: string): Promise<Uint8Array> {
    if (answer.status !== 200) throw await this.#exchange.refusal(answer, name);
    return readBody(answer, manifestBytesMax, 'manifest');
  }

  async #openBlob(
    repository: string,
    digest: Digest,
    from: number,
    signal: AbortSignal | undefined,
  ): Promise<OpenBlob> {
    const ask = (headers: Readonly<Record<string, string>>): Promise<RegistryAnswer> =>
      this.#exchange.ask({
        ...{ method: 'GET', repository, path: `blobs/${digest}`, headers, scope: 'pull', signal },
        isBlob: true,
      });
    let answer = await ask(from === 0 ? {} : { range: `bytes=${from}-` });
    if (answer.status === 416) {
      // It has less than we have, or counts otherwise: its content is read from the start.
      answer.close();
      answer = await ask({});
    }
    const start = startOf(answer, from);
    if (start !== undefined) return { start, chunks: answer.body, close: () => answer.close() };
    throw await this.#exchange.refusal(answer, `blob ${digest} of ${repository}`);
  }
}

/** Statuses of servers that know no HEAD here. */
const headUnknown: ReadonlySet<number> = new Set([400, 405, 501]);

function told256({ headers }: WebAnswer): Digest | undefined {
  return parseDigest(headers['docker-content-digest'] ?? '');
}

/** Where the body of an answer begins; undefined when it is no part of the requested range. */
export function startOf({ status, headers }: WebAnswer, from: number): number | undefined {
  if (status === 200) return 0;
  if (status !== 206 || from === 0) return undefined;
  return parseContentRange(headers['content-range'])?.start === from ? from : undefined;
}
