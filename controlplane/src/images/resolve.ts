/** How the digest behind an image's name is found: the port, and what needs no registry. */
import type { FailureName } from '@rackwright/messages';
import { digestOfImage } from './name.ts';
import type { PlatformDigests } from './platforms.ts';

export type ResolveAnswer =
  | {
      readonly kind: 'digest';
      readonly digest: string;
      readonly version: string;
      /** What it is for each platform; missing: nobody has looked. */
      readonly platforms?: PlatformDigests;
    }
  /** It is still the one that was known. */
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'failed';
      readonly type: FailureName;
      /** What is wrong and what would be right, for people. */
      readonly message: string;
      /** How long the registry wants to be left alone, where it says so. */
      readonly retryAfterMs?: number;
    };

/**
 * Asks a registry for the digest behind a reference by tag. `known` is the digest that it had when
 * it was asked last; empty: it never was. Never rejects, and answers in bounded time.
 */
export type ResolveImage = (
  reference: string,
  known: string,
  signal: AbortSignal,
) => Promise<ResolveAnswer>;

/** A reference by digest says all by itself; any other is asked for. */
export function resolveWith(ask: ResolveImage): ResolveImage {
  return async (reference, known, signal) => {
    const digest = digestOfImage(reference);
    if (digest !== '') return { kind: 'digest', digest, version: '' };
    return ask(reference, known, signal);
  };
}

/** Where no registry is reached. */
export const askNobody: ResolveImage = async () => ({
  kind: 'failed',
  type: 'unsupported',
  message: 'this control plane asks no registry for tags; name the image by its digest',
});
