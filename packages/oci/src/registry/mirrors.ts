/**
 * A registry and its mirrors.
 *
 * 1. Mirrors are asked in their order, then the registry itself.
 * 2. No mirror is trusted: it is asked for digests only, and its answers are verified like all
 *    others. A mirror that sends something else, or almost nothing, is not asked for that blob
 *    again.
 * 3. A mirror that does not answer is skipped from then on, because each request would wait for it
 *    again. When no place answers, all mirrors are asked again.
 * 4. Only the registry resolves a tag: a mirror could answer with an old digest.
 */
import type { WebClient, WebLimits } from '@rackwright/platform';
import type { Digest } from '../digest.ts';
import { isOciError, OciError } from '../failure.ts';
import { type Pulling, RegistryClient, type ResolvedTag } from './client.ts';
import { defaultWebLimits, type RegistryAccess } from './exchange.ts';
import type { BlobSource, OpenBlob } from './source.ts';

/** A place with copies of a registry's content. */
export interface Mirror extends RegistryAccess {
  /** Put before the registry's repositories there, as "docker.io"; empty: nothing. */
  readonly prefix: string;
}

export const mirrorsMax = 8;
const messageCharactersMax = 1_000;

interface RegistrySource {
  readonly name: string;
  readonly client: RegistryClient;
  readonly prefix: string;
}

/** A registry behind its mirrors. */
export class MirroredRegistry implements Pulling {
  readonly #origin: RegistryClient;
  /** The registry itself is the last. */
  readonly #sources: readonly RegistrySource[];
  /** Names of mirrors. */
  readonly #away = new Set<string>();

  constructor(
    web: WebClient,
    access: RegistryAccess,
    mirrors: readonly Mirror[],
    limits: WebLimits = defaultWebLimits,
  ) {
    if (mirrors.length > mirrorsMax) {
      const message = `${access.registry} has ${mirrors.length} mirrors; at most ${mirrorsMax}`;
      throw new OciError('tooLarge', message);
    }
    this.#origin = new RegistryClient(web, access, limits);
    const mirrored = mirrors.map((mirror) => ({
      ...{ name: mirror.registry, prefix: mirror.prefix },
      client: new RegistryClient(web, mirror, limits),
    }));
    this.#sources = [...mirrored, { name: access.registry, prefix: '', client: this.#origin }];
  }

  async manifest(repository: string, digest: Digest, signal?: AbortSignal): Promise<Uint8Array> {
    const ask = ({ client, prefix }: RegistrySource): Promise<Uint8Array> =>
      client.manifest(at(prefix, repository), digest, signal);
    return (await firstThatHas(this.#sources, 0, this.#away, signal, ask)).value;
  }

  /** See `RegistryClient.resolve`. */
  resolve(
    repository: string,
    tag: string,
    known?: Digest,
    signal?: AbortSignal,
  ): Promise<ResolvedTag> {
    return this.#origin.resolve(repository, tag, known, signal);
  }

  blobs(repository: string): BlobSource {
    const sources = this.#sources.map(({ name, client, prefix }) => {
      return { name, blobs: client.blobs(at(prefix, repository)) };
    });
    /** Digest → the first place that is asked for it. */
    const from = new Map<Digest, number>();
    const first = (digest: Digest): number => from.get(digest) ?? 0;
    return {
      open: async (digest, start, signal): Promise<OpenBlob> => {
        const ask = ({ blobs }: (typeof sources)[number]): Promise<OpenBlob> =>
          blobs.open(digest, start, signal);
        const tried = await firstThatHas(sources, first(digest), this.#away, signal, ask);
        from.set(digest, tried.sourceIndex);
        return tried.value;
      },
      elsewhere: (digest) => {
        const next = first(digest) + 1;
        if (next >= sources.length) return false;
        from.set(digest, next);
        return true;
      },
    };
  }
}

function at(prefix: string, repository: string): string {
  return prefix === '' ? repository : `${prefix}/${repository}`;
}

/** Asks one place after the other; reports the last failure together with the earlier ones. */
async function firstThatHas<P extends { readonly name: string }, T>(
  sources: readonly P[],
  first: number,
  away: Set<string>,
  signal: AbortSignal | undefined,
  ask: (source: P) => Promise<T>,
): Promise<{ readonly value: T; readonly sourceIndex: number }> {
  const problems: string[] = [];
  for (const [index, source] of sources.entries()) {
    const isOrigin = index === sources.length - 1;
    if (index < first || (away.has(source.name) && !isOrigin)) continue;
    try {
      return { value: await ask(source), sourceIndex: index };
    } catch (error) {
      if (!isOciError(error)) throw error;
      if (error.kind === 'unreachable' && signal?.aborted !== true) away.add(source.name);
      if (isOrigin) away.clear();
      const isLast = isOrigin || signal?.aborted === true;
      if (isLast && problems.length === 0) throw error;
      if (isLast) {
        const message = `${error.message}; its mirrors: ${problems.join('; ')}`;
        const { kind, retryAfterMs } = error;
        throw new OciError(kind, message.slice(0, messageCharactersMax), {
          retryAfterMs,
          cause: error,
        });
      }
      problems.push(error.message);
    }
  }
  throw new OciError('unreachable', 'there is no place to ask');
}
