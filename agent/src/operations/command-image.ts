/**
 * The image of a command: fetched and pinned before the runner gets its step. The runner then asks
 * this agent for it by digest.
 *
 * Nothing has begun while it is fetched: a failure here may be retried.
 */
import type { agent } from '@rackwright/messages';
import { isOciError, type OciError } from '@rackwright/oci';
import type { Clock } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import type { Images, PinnedImage } from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { timeLimit } from './time-limit.ts';

export interface CommandImages {
  readonly images: Pick<Images, 'fetch'>;
  readonly clock: Clock;
}

/** Runs `order` while the image is pinned; answers for an image that cannot be had. */
export async function withImage(
  parts: CommandImages | undefined,
  image: agent.CommandImage,
  step: string,
  context: OperationContext,
  order: () => Promise<FinalResult>,
): Promise<FinalResult> {
  if (parts === undefined) return failure('unsupported', 'this agent keeps no images');
  const pinned = await fetchImage(parts, image, step, context);
  if ('kind' in pinned) return pinned;
  try {
    return await order();
  } finally {
    pinned.release();
  }
}

async function fetchImage(
  { images, clock }: CommandImages,
  { reference, credential: name, credentialVersion, ...image }: agent.CommandImage,
  step: string,
  context: OperationContext,
): Promise<PinnedImage | FinalResult> {
  const credential = name === '' ? undefined : await context.credential(name, credentialVersion);
  const limit = timeLimit(clock, context);
  const progress = (fetchedBytes: number, allBytes: number): void => {
    const percent = allBytes === 0 ? 100 : Math.floor((100 * fetchedBytes) / allBytes);
    const text = `fetches the image: ${megabytes(fetchedBytes)} of ${megabytes(allBytes)} MB`;
    context.reportProgress({ step, percent, text });
  };
  try {
    progress(0, 0);
    const { plainHttp, tokenService, internalAddresses: internal } = image;
    const wanted = { reference, plainHttp, credential, tokenService, internal };
    return await images.fetch(wanted, limit.signal, progress);
  } catch (error) {
    if (context.signal.aborted) return failure('cancelled', 'It was cancelled.');
    if (limit.isOver()) {
      return failure('deadline', 'Its deadline passed while its image was fetched.');
    }
    if (isOciError(error)) return resultOfOci(error);
    throw error;
  } finally {
    limit.end();
  }
}

/** For progress. */
export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

/** A transient failure: with the delay that the registry asks for, if any. */
export function registryLater({ message, retryAfterMs }: OciError): FinalResult {
  const delay = retryAfterMs === undefined ? {} : { delayMs: retryAfterMs };
  return { kind: 'transientError', cause: 'registry', message, ...delay };
}

/** For an image at an internal address. */
export const remedyOfForbidden = 'list that address among the internal addresses of the fleet';

/** A transient failure is retried; any other needs a person, and its message says why. */
export function resultOfOci(error: OciError): FinalResult {
  const { kind, message } = error;
  switch (kind) {
    case 'unreachable':
    case 'cancelled':
    case 'tooMany':
    case 'noSpace':
      return registryLater(error);
    case 'unauthorized': {
      const remedy = 'correct its credential among the registry credentials of the fleet';
      return failure('imageUnusable', `${message}: ${remedy}`);
    }
    case 'forbidden':
      return failure('imageUnusable', `${message}: ${remedyOfForbidden}`);
    case 'untrusted':
    case 'refused':
    case 'notFound':
    case 'noPlatform':
    case 'digestMismatch':
    case 'truncated':
    case 'tooLarge':
    case 'malformed':
      return failure('imageUnusable', message);
  }
}
