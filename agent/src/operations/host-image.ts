/**
 * An image on its way onto a host's disk: held in the rack's cache while the runner writes it.
 *
 * W1 The runner is ordered as soon as the image can be read, which may be long before it is whole.
 *    An image that turns out wrong, or cannot be had to its end, stops the runner; what was wrong
 *    with it is the result, not what the runner made of that.
 * W2 After a restart of ours the image is held again before the runner that still has the order is
 *    looked for: it reads on where it was.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type agent, DeployProof, FirstBootFormat, type runner } from '@rackwright/api';
import { type DiskImage, isOciError, type OciError } from '@rackwright/oci';
import type { Clock } from '@rackwright/platform';
import type { FailureType, FinalResult } from '@rackwright/results';
import {
  type Architecture,
  type HeldHostImage,
  type HostImageProgress,
  type HostImages,
  wantedImage,
} from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { megabytes } from './command-image.ts';
import { timeLimit } from './time-limit.ts';

export const writeImageStep = 'deploy.write_image';

export interface HostImageParts {
  readonly images: Pick<HostImages, 'hold'>;
  readonly clock: Clock;
  /** Of the hosts that boot here, where the runner says nothing of its own. */
  readonly architecture: Architecture;
  /** Where the host of a deployment calls when it runs. */
  readonly phoneHomePath: (deploymentId: string) => string;
}

/** What the runner is told beside its order. */
export interface OrderedImage {
  readonly imageFile: MessageInitShape<typeof runner.ImageFileSchema>;
  /** Empty: nowhere. */
  readonly phoneHomePath: string;
}

/** Orders the step from the runner, or takes up the order of an earlier life. */
export type OrderWith<Result> = (
  image: OrderedImage,
  context: OperationContext,
) => Promise<FinalResult | Result>;

/** Runs `order` while the image is held; answers for an image that cannot be had. */
export async function withHostImage<Result>(
  parts: HostImageParts | undefined,
  operation: agent.Operation,
  request: agent.RunStep,
  found: Architecture | undefined,
  context: OperationContext,
  order: OrderWith<Result>,
): Promise<FinalResult | Result> {
  if (parts === undefined) return failure('unsupported', 'this agent keeps no images of hosts');
  const { deployment } = request;
  if (deployment?.image === undefined) {
    return failure('invalidArgument', `${request.step} names no image`);
  }
  const architecture = found ?? parts.architecture;
  const wanted = await wantedImage(deployment.image, architecture, 'disk', context.credential);
  if ('type' in wanted) return wanted;
  let isOrdered = false;
  const told = (progress: HostImageProgress): void => {
    if (!isOrdered) context.continuing({ step: request.step, ...progressWords(progress) });
  };
  const limit = timeLimit(parts.clock, context);
  let held: HeldHostImage;
  try {
    held = await parts.images.hold(operation.hostUid, wanted, limit.signal, told);
  } catch (error) {
    return notHeld(error, context, limit.isOver());
  } finally {
    limit.end();
  }
  try {
    const { disk } = held.image;
    if (disk === undefined) return failure('badImage', 'the image has no disk');
    isOrdered = true;
    return await whileHeld(held, context, order, {
      imageFile: imageFile(disk),
      phoneHomePath: callsHome(deployment) ? parts.phoneHomePath(deployment.id) : '',
    });
  } finally {
    held.release();
  }
}

/** W1. */
async function whileHeld<Result>(
  held: HeldHostImage,
  context: OperationContext,
  order: OrderWith<Result>,
  image: OrderedImage,
): Promise<FinalResult | Result> {
  const stop = new AbortController();
  let broken: OciError | undefined;
  held.whole.catch((error: unknown) => {
    // Whoever is over, or let go of it, need not be stopped.
    if (!isOciError(error)) return;
    broken = error;
    stop.abort();
  });
  const signal = AbortSignal.any([context.signal, stop.signal]);
  const result = await order(image, { ...context, signal });
  if (broken === undefined || context.signal.aborted) return result;
  const isOver = isFinal(result) && result.kind === 'complete';
  if (isOver) return result;
  const its = resultOfHostImage(broken, true);
  // The runner was stopped: before it had begun, as it says itself, or nobody knows.
  const isUntouched = isFinal(result) && result.kind === 'failed' && result.disksUntouched === true;
  return isUntouched && its.kind === 'failed' ? { ...its, disksUntouched: true } : its;
}

function isFinal<Result>(result: FinalResult | Result): result is FinalResult {
  return typeof result === 'object' && result !== null && 'kind' in result;
}

/** A host whose proof is its power, or whose image gets no data of ours, need not call. */
function callsHome({ deploy }: agent.Deployment): boolean {
  if (deploy?.proof === DeployProof.POWER_ON) return false;
  return deploy?.firstBoot?.format !== FirstBootFormat.NONE;
}

function imageFile(disk: DiskImage): OrderedImage['imageFile'] {
  const { blob, format, compression, contentBytes, contentDigest, architecture } = disk;
  return {
    digest: blob.digest,
    sizeBytes: BigInt(blob.sizeBytes),
    format: format ?? '',
    compression: compression ?? '',
    contentBytes: BigInt(contentBytes ?? 0),
    contentDigest: contentDigest ?? '',
    architecture: architecture ?? '',
  };
}

/** How far an image is on its way into the cache. */
export function progressWords(progress: HostImageProgress): { text: string; percent?: number } {
  if (progress.phase === 'queued') return { text: `queued for the image, place ${progress.place}` };
  const { fetchedBytes, allBytes } = progress;
  const percent = allBytes === 0 ? 100 : Math.floor((100 * fetchedBytes) / allBytes);
  return {
    percent,
    text: `fetches the image: ${megabytes(fetchedBytes)} of ${megabytes(allBytes)} MB`,
  };
}

/** What `hold` has rejected with, as a result. */
export function notHeld(
  error: unknown,
  { signal }: Pick<OperationContext, 'signal'>,
  isLate: boolean,
): FinalResult {
  if (signal.aborted) return failure('cancelled', 'It was cancelled.');
  if (isLate) return failure('deadline', 'Its deadline passed while its image was fetched.');
  if (isOciError(error)) return resultOfHostImage(error, false);
  throw error;
}

const failureOf = {
  unauthorized: 'registryUnauthorized',
  untrusted: 'registryUnreachable',
  notFound: 'imageNotFound',
  noPlatform: 'wrongArchitecture',
  digestMismatch: 'imageDigestMismatch',
  truncated: 'imageTruncated',
  // Than the cache: larger than the disk is the runner's to find.
  tooLarge: 'noSpace',
  noSpace: 'noSpace',
  malformed: 'badImage',
} as const satisfies Record<string, FailureType>;

const remedies: { readonly [Kind in OciError['kind']]?: string } = {
  unauthorized: 'correct its credential among the registries of the fleet',
  untrusted: 'give its authority among the registries of the fleet',
};

/** Without a word of the registry's own. */
const tooManyDelayMs = 30_000;

/** What may pass is tried again; the rest needs a person, in words that say what. */
export function resultOfHostImage(error: OciError, hasBegun: boolean): FinalResult {
  const { kind, message, retryAfterMs } = error;
  switch (kind) {
    case 'tooMany': {
      if (hasBegun) return { kind: 'transientError', cause: 'registry', message };
      const delayMs = retryAfterMs ?? tooManyDelayMs;
      return { kind: 'retryAfter', reason: 'fault', message, delayMs };
    }
    case 'unreachable':
      return { kind: 'transientError', cause: 'registry', message };
    default: {
      const remedy = remedies[kind];
      return failure(failureOf[kind], remedy === undefined ? message : `${message}: ${remedy}`);
    }
  }
}
