/**
 * A deployment as people ask for it, to what a host is told: checked whole, and its image named by
 * digest. What a tag names is looked up once, at the request, and kept.
 */
import {
  type DeploySpec,
  failedPrecondition,
  invalidArgument,
  unavailable,
  type store as wire,
} from '@rackwright/api';
import type { HostRequest } from '../../host/index.ts';
import { atDigest, imageNameProblem, type ResolveAnswer, withoutTag } from '../../images/index.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { Violations } from '../call/violations.ts';
import { checkDeploySpec } from '../spec/deploy-spec.ts';

const imageCharactersMax = 2_048;
/** More than a registry is given for one question. */
const resolveTimeoutMs = 40_000;

interface Asked {
  readonly image: string;
  readonly deploy?: DeploySpec | undefined;
}

type Resolving = Pick<RpcDependencies, 'resolve' | 'clock'>;

/** Checks what is asked for, its fields below `path` ("provision."). Throws `invalidArgument`. */
export function checkDeployment({ image, deploy }: Asked, path = ''): void {
  const violations = new Violations();
  violations.addIf(`${path}image`, problemOf(image));
  if (deploy !== undefined) checkDeploySpec(`${path}deploy`, deploy, violations);
  violations.throwIfAny();
}

function problemOf(image: string): string | undefined {
  if (image.length <= imageCharactersMax) return imageNameProblem(image);
  return `has ${image.length} characters; at most ${imageCharactersMax} are taken`;
}

/** The request for the host loop, once the image is known by its digest. */
export function deployRequest(
  kind: 'provision' | 'reimage',
  image: string,
  deploy: DeploySpec | undefined,
): Extract<HostRequest, { readonly image: string }> {
  return { kind, image, ...(deploy === undefined ? {} : { deploy }) };
}

/** Whether this very request has been applied: then nothing is looked up for it again. */
export function isApplied(record: wire.HostRecord | undefined, id: string | undefined): boolean {
  return id !== undefined && record?.requestIds.includes(id) === true;
}

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
