/** The texts about an image on its way: its progress, and why it cannot be fetched. */
import type { FailureName } from '@rackwright/messages';
import { isOciError, type OciError } from '@rackwright/oci';
import type { FinalResult } from '@rackwright/results';
import type { HostImageProgress } from '../images/index.ts';
import type { OperationContext, Progress } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { megabytes, registryLater, remedyOfForbidden } from './command-image.ts';
import type { SlotLimit } from './time-limit.ts';

/** The progress of an image on its way into the cache. */
export function progressOf(progress: HostImageProgress): Omit<Progress, 'step'> {
  switch (progress.phase) {
    case 'queued':
      return {
        text: `queued for the image, place ${progress.position}`,
        queuePlace: progress.position,
      };
    case 'admitted':
      return { text: 'asks for the image' };
    case 'fetching': {
      const { fetchedBytes, allBytes } = progress;
      const percent = allBytes === 0 ? 100 : Math.floor((100 * fetchedBytes) / allBytes);
      const text = `fetches the image: ${megabytes(fetchedBytes)} of ${megabytes(allBytes)} MB`;
      return { percent, text };
    }
  }
}

/** Failures that are the host's and not the image's, even if the image was read wrongly. */
const ofTheHost: ReadonlySet<FailureName> = new Set<FailureName>([
  'ioError',
  'writeError',
  'noRootDisk',
  'keepDisk',
  'imageTooLarge',
  'wrongArchitecture',
  'notBootable',
  'deviceChanged',
  'identityMismatch',
  'identityUnproven',
  'invalidArgument',
]);

/**
 * Whether the runner may have read a wrong or unreadable image here: in that case a step may also
 * end as interrupted, or late. A doubt costs one reading of the file.
 */
export function mayBeTheImage(result: FinalResult): boolean {
  if (result.kind === 'complete') return false;
  return result.kind !== 'failed' || !ofTheHost.has(result.type);
}

/** What `pin` has rejected with, as a result. */
export function notPinned(
  error: unknown,
  { signal }: Pick<OperationContext, 'signal'>,
  limit: Pick<SlotLimit, 'isOver' | 'hadItsSlot'>,
): FinalResult {
  if (signal.aborted) return failure('cancelled', 'It was cancelled.');
  if (limit.isOver()) {
    return limit.hadItsSlot()
      ? failure('deadline', 'Its deadline passed while its image was fetched.')
      : failure('queueTimeout', 'No slot to get the image came free in time.');
  }
  if (isOciError(error)) return resultOfHostImage(error);
  throw error;
}

const failureOf = {
  unauthorized: 'registryUnauthorized',
  untrusted: 'registryUnreachable',
  forbidden: 'notAllowed',
  refused: 'registryUnreachable',
  notFound: 'imageNotFound',
  noPlatform: 'wrongArchitecture',
  digestMismatch: 'imageDigestMismatch',
  truncated: 'imageTruncated',
  // Than the cache: larger than the disk is the runner's to find.
  tooLarge: 'noSpace',
  noSpace: 'noSpace',
  malformed: 'badImage',
} as const satisfies Record<string, FailureName>;

const remedies: { readonly [Kind in OciError['kind']]?: string } = {
  unauthorized: 'correct its credential among the registries of the fleet',
  untrusted: 'give its authority among the registries of the fleet',
  forbidden: remedyOfForbidden,
  refused:
    'see how the registries of the fleet say to ask it: by plain HTTP or not, and its mirrors',
};

/** A transient failure is retried; any other needs a person, and its message says why. */
export function resultOfHostImage(error: OciError): FinalResult {
  const { kind, message } = error;
  switch (kind) {
    case 'tooMany':
    case 'unreachable':
    case 'cancelled':
      return registryLater(error);
    default: {
      const remedy = remedies[kind];
      return failure(failureOf[kind], remedy === undefined ? message : `${message}: ${remedy}`);
    }
  }
}
