/** Finds the digest behind an image's name: the port, and the part that needs no registry. */
import type { FailureName } from '@rackwright/messages';
import { digestOfImage } from './name.ts';
import type { PlatformDigests } from './platforms.ts';

export type ResolveResult =
  | {
      readonly kind: 'digest';
      readonly digest: string;
      readonly version: string;
      /** The digests for each platform; missing: not read. */
      readonly platforms?: PlatformDigests;
    }
  /** It is still the known one. */
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'failed';
      readonly type: FailureName;
      /** What is wrong and what would be right, for people. */
      readonly message: string;
      /** The pause that the registry requests, if any. */
      readonly retryAfterMs?: number;
    };

/**
 * Asks a registry for the digest of a reference by tag. `known` is the digest of the last answer;
 * empty: there was none. Never rejects, and answers in bounded time.
 */
export type ResolveImage = (
  reference: string,
  known: string,
  signal: AbortSignal,
) => Promise<ResolveResult>;

/** A reference by digest needs no request; any other is resolved. */
export function resolveWith(ask: ResolveImage): ResolveImage {
  return async (reference, known, signal) => {
    const digest = digestOfImage(reference);
    if (digest !== '') return { kind: 'digest', digest, version: '' };
    return ask(reference, known, signal);
  };
}

/** For a platform without access to registries. */
export const askNobody: ResolveImage = async () => ({
  kind: 'failed',
  type: 'unsupported',
  message: 'this control plane asks no registry for tags; name the image by its digest',
});
