/** What a tag names is looked up once, at the request, and kept: hosts are told digests. */
import { failedPrecondition, invalidArgument, unavailable } from '@rackwright/api';
import { atDigest, type ResolveAnswer, withoutTag } from '../../images/index.ts';
import type { RpcDependencies } from '../call/ports.ts';

/** More than a registry is given for one question. */
const resolveTimeoutMs = 40_000;

type Resolving = Pick<RpcDependencies, 'resolve' | 'clock'>;

/** The image by digest. Throws why it cannot be looked up now, naming the registry and a remedy. */
export async function imageByDigest(
  { resolve, clock }: Resolving,
  image: string,
  field = 'image',
): Promise<string> {
  const named = withoutTag(image);
  if (named !== undefined) return named;
  const late = new AbortController();
  const cancel = clock.after(resolveTimeoutMs, () => late.abort());
  try {
    const answer = await resolve?.(image, '', late.signal);
    const found = answer?.kind === 'digest' ? atDigest(image, answer.digest) : undefined;
    if (found !== undefined) return found;
    throw failureOf(image, field, answer);
  } finally {
    cancel();
  }
}

function failureOf(image: string, field: string, answer: ResolveAnswer | undefined): Error {
  const failed = answer?.kind === 'failed' ? answer : undefined;
  const why = failed?.message ?? 'no registry was asked';
  const message = `${image} could not be looked up: ${why}`;
  switch (failed?.type) {
    case 'notFound':
    case 'malformed':
      return invalidArgument([{ field, description: `cannot be looked up: ${why}` }]);
    case 'unreachable':
    case 'tooMany':
      return unavailable('REGISTRY_UNAVAILABLE', message, failed.retryAfterMs);
    default:
      return failedPrecondition('IMAGE_UNRESOLVED', message);
  }
}
