/** A tag is resolved once, at the request, and the digest is stored: hosts always get digests. */
import { failedPrecondition, invalidArgument, unavailable } from '@rackwright/messages';
import type { RpcDependencies } from '../../call/ports.ts';
import {
  atDigest,
  type PlatformDigests,
  type ResolveResult,
  withoutTag,
} from '../../images/index.ts';
import { checkImageHost } from './image-host.ts';

/** More than the time limit of one registry request. */
const resolveTimeoutMs = 40_000;

type Resolving = Pick<RpcDependencies, 'resolve' | 'clock' | 'store' | 'principal'>;

/** The image by digest. Throws why it cannot be resolved now, with the registry and a remedy. */
export async function imageByDigest(
  resolving: Resolving,
  image: string,
  field = 'image',
): Promise<string> {
  return (await resolvedImage(resolving, image, field)).image;
}

/** The same, with the digests for each platform, if they were read. */
export async function resolvedImage(
  deps: Resolving,
  image: string,
  field = 'image',
): Promise<{ readonly image: string; readonly platforms?: PlatformDigests | undefined }> {
  await checkImageHost(deps, image, field);
  const { resolve, clock } = deps;
  const named = withoutTag(image);
  if (named !== undefined) return { image: named };
  const late = new AbortController();
  const cancel = clock.after(resolveTimeoutMs, () => late.abort());
  try {
    const answer = await resolve?.(image, '', late.signal);
    const found = answer?.kind === 'digest' ? atDigest(image, answer.digest) : undefined;
    if (found !== undefined && answer?.kind === 'digest') {
      return { image: found, platforms: answer.platforms };
    }
    throw failureOf(image, field, answer);
  } finally {
    cancel();
  }
}

function failureOf(image: string, field: string, answer: ResolveResult | undefined): Error {
  const failed = answer?.kind === 'failed' ? answer : undefined;
  const why = failed?.message ?? 'no registry was asked';
  const message = `${image} could not be looked up: ${why}`;
  switch (failed?.type) {
    case 'imageNotFound':
    case 'badImage':
    case 'invalidArgument':
      return invalidArgument([{ field, description: `cannot be looked up: ${why}` }]);
    case 'registryUnreachable':
      return unavailable('REGISTRY_UNAVAILABLE', message, failed.retryAfterMs);
    default:
      return failedPrecondition('IMAGE_UNRESOLVED', message);
  }
}
