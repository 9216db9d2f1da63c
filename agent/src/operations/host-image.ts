/**
 * An image on its way onto a host's disk: pinned in the rack's cache while the runner writes it.
 *
 * W1 The runner gets its order only after the image is here whole and verified: an image that is
 *    wrong, or cannot be fetched to its end, destroys no disk.
 * W2 When the registry is unreachable meanwhile, the step waits for it, also after a restart of
 *    ours. At the same time it looks for the runner that still has the order: that runner reads on
 *    where it was.
 * W3 An image that turns out wrong, or cannot be fetched to its end, stops the runner and ends the
 *    step with the reason. When the fetch begins anew from another source, the step begins anew
 *    too.
 * W4 Only where the control plane says that the disks hold nothing worth keeping, the runner gets
 *    its order when the fetch has begun, and writes the image as it arrives. The agent serves the
 *    end of the image only after all of it was verified here. The runner makes nothing bootable
 *    before it has verified and read back all of it as well.
 */
import { type agent, type DeploymentId, DeployProof, FirstBootFormat } from '@rackwright/messages';
import { type DiskImage, isOciError, OciError } from '@rackwright/oci';
import { type Clock, markHandled, pause } from '@rackwright/platform';
import type { FailedAttempt, FinalResult } from '@rackwright/results';
import {
  type CarriedKey,
  type ComingHostImage,
  type DetachedFetches,
  type HostImageProgress,
  type HostImages,
  type ImageArchitecture,
  type PinnedHostImage,
  type WantedHostImage,
  waitForAbort,
  wantedImage,
} from '../images/index.ts';
import type { ImageOfOrder } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { mayBeTheImage, notPinned, progressOf, resultOfHostImage } from './host-image-result.ts';
import { slotLimit } from './time-limit.ts';

export interface HostImageParts {
  readonly images: Pick<HostImages, 'begin' | 'pin'>;
  /** What `deploy.fetch_image` has begun. */
  readonly carriedOn: DetachedFetches;
  readonly clock: Clock;
  /** The processor of the hosts that boot here, unless the runner reports its own. */
  readonly architecture: ImageArchitecture;
  /** The path that the host of a deployment calls when it runs. */
  readonly phoneHomePath: (deploymentId: DeploymentId) => string;
}

/** Orders the step from the runner. */
export type OrderWithImage = (
  image: ImageOfOrder,
  context: OperationContext,
) => Promise<FinalResult>;

/**
 * Resumes the order that the runner may still be at work on. A runner that never got the order gets
 * it once the image is here.
 */
export type ResumeWithImage<Result> = (
  image: () => ImageOfOrder | undefined,
  context: OperationContext,
) => Promise<FinalResult | Result>;

/** Runs `order` while the image is pinned; answers for an image that cannot be had. */
export async function withHostImage(
  parts: HostImageParts | undefined,
  operation: agent.Operation,
  request: agent.RunStep,
  found: ImageArchitecture | undefined,
  context: OperationContext,
  order: OrderWithImage,
): Promise<FinalResult> {
  if (parts === undefined) return noImagesKept();
  const wanted = await wantedDisk(parts, request, found, context);
  if ('type' in wanted) return wanted;
  const limit = slotLimit(parts.clock, request, context);
  let isOrdered = false;
  const report = (progress: HostImageProgress): void => {
    if (progress.phase !== 'queued') limit.begin();
    // From then on the runner reports the progress.
    if (isOrdered) return;
    context.reportProgress({ step: request.step, ...progressOf(progress) });
  };
  let coming: ComingHostImage;
  try {
    const begin = parts.images[pinMethodOf(request.deployment)];
    coming =
      takeCarried(parts, operation, request, wanted) ??
      (await begin.call(parts.images, operation.hostUid, wanted, limit.signal, report));
    limit.begin();
  } catch (error) {
    return notPinned(error, context, limit);
  } finally {
    limit.end();
  }
  const image = imageOfOrder(parts, request, coming);
  if (image === undefined) {
    coming.release();
    return failure('badImage', 'the image has no disk');
  }
  isOrdered = true;
  const within = { ...context, remainingMs: () => limit.remainingMs() };
  return whilePinned(parts, operation, request, within, coming, (_, its) => order(image, its));
}

/** Whether all of the image is waited for before anything is done with it (W1, W4). */
export function pinMethodOf(
  deployment: Pick<agent.Deployment, 'writeAsFetched'> | undefined,
): 'begin' | 'pin' {
  return deployment?.writeAsFetched === true ? 'begin' : 'pin';
}

/** The key of a fetch that is carried on for this deployment. */
export function carriedKey(
  { hostUid }: Pick<agent.Operation, 'hostUid'>,
  { id: deploymentId }: Pick<agent.Deployment, 'id'>,
  architecture: ImageArchitecture,
): CarriedKey {
  return { hostUid, deploymentId, architecture };
}

/** The fetch that is under way already for this deployment. */
function takeCarried(
  { carriedOn }: HostImageParts,
  operation: agent.Operation,
  { deployment }: agent.RunStep,
  { architecture }: WantedHostImage,
): ComingHostImage | undefined {
  if (deployment === undefined || pinMethodOf(deployment) === 'pin') return undefined;
  return carriedOn.take(carriedKey(operation, deployment, architecture));
}

/** The image is pinned meanwhile as soon as it can be had (W2). */
export async function resumeWithHostImage<Result>(
  parts: HostImageParts | undefined,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  resume: ResumeWithImage<Result>,
): Promise<FinalResult | Result> {
  if (parts === undefined) return noImagesKept();
  return whilePinned(parts, operation, request, context, undefined, resume);
}

/** Pins the image while a runner works; `first`: as it is pinned already. */
async function whilePinned<Result>(
  parts: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  first: ComingHostImage | undefined,
  work: ResumeWithImage<Result>,
): Promise<FinalResult | Result> {
  const stop = new AbortController();
  const over = new AbortController();
  let broken: OciError | undefined;
  let image: ImageOfOrder | undefined;
  let again: PinnedHostImage | undefined;
  const within = { ...context, signal: AbortSignal.any([context.signal, over.signal]) };
  const pinning = keepPinned(parts, operation, request, within, first, {
    pinned: (pinned) => {
      again = pinned;
      image = imageOfOrder(parts, request, pinned);
    },
    broken: (error) => {
      broken = error;
      stop.abort();
    },
  });
  try {
    const signal = AbortSignal.any([context.signal, stop.signal]);
    const result = await work(() => image, { ...context, signal });
    if (isFinal(result) && mayBeTheImage(result)) again?.doubt();
    return broken === undefined || context.signal.aborted ? result : withImageFault(broken, result);
  } finally {
    over.abort();
    await pinning;
  }
}

interface PinObservers {
  pinned(image: PinnedHostImage): void;
  broken(error: OciError): void;
}

/** Between two tries to pin an image again. */
const pinAgainMs = 2_000;

/** Never rejects. Pins it until the signal is aborted, or until it proves unavailable. */
async function keepPinned(
  parts: HostImageParts,
  { hostUid }: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  first: ComingHostImage | undefined,
  observers: PinObservers,
): Promise<void> {
  const { signal } = context;
  for (let coming = first; !signal.aborted || coming !== undefined; coming = undefined) {
    try {
      if (coming === undefined) {
        const wanted = await wantedDisk(parts, request, undefined, context);
        if ('type' in wanted) return;
        const way = pinMethodOf(request.deployment);
        coming = await parts.images[way](hostUid, wanted, signal, () => {});
      }
      observers.pinned(coming);
      await waitUntilWhole(coming, signal);
      await waitForAbort(signal);
    } catch (error) {
      if (signal.aborted) return;
      const isFinal = isOciError(error) && resultOfHostImage(error).kind === 'failed';
      if (isFinal || error instanceof FetchRestarted) return observers.broken(error);
      // The registry is unreachable, or a credential has not arrived yet.
      await pause(parts.clock, pinAgainMs, signal);
    } finally {
      coming?.release();
    }
  }
}

/** The received part was not of this image (W3). */
class FetchRestarted extends OciError {
  constructor() {
    super('unreachable', 'what had come of the image was not of it; it is fetched anew');
  }
}

/** Rejects as `whole` does, or with `FetchRestarted`; an abort resolves it, too. */
async function waitUntilWhole(
  { whole, restarted }: Pick<ComingHostImage, 'whole' | 'restarted'>,
  signal: AbortSignal,
): Promise<void> {
  const thrownAway = waitForAbort(restarted).then(() => {
    throw new FetchRestarted();
  });
  markHandled(thrownAway);
  await Promise.race([whole, thrownAway, waitForAbort(signal)]);
}

/** The image's fault, in place of the runner's result that followed from it. */
function withImageFault<Result>(
  broken: OciError,
  result: FinalResult | Result,
): FinalResult | Result {
  if (isFinal(result) && result.kind === 'complete') return result;
  const its = resultOfHostImage(broken);
  // The runner was stopped: it had not begun, by its own report, or that is unknown.
  if (!isFinal(result) || result.kind !== 'failed') return its;
  if (result.disksUntouched === true) {
    const isFailure = its.kind === 'failed' || its.kind === 'transientError';
    return isFailure ? { ...its, disksUntouched: true } : its;
  }
  if (its.kind !== 'failed') return its;
  const { observations } = result;
  if (observations?.writtenImage === undefined) return its;
  const { serial, wwn, device } = observations.writtenImage;
  const lost = `what the disk ${serial || wwn || device} held is lost`;
  return { ...its, message: `${its.message}; ${lost}`, observations };
}

function isFinal(result: unknown): result is FinalResult {
  return typeof result === 'object' && result !== null && 'kind' in result;
}

function noImagesKept(): FailedAttempt {
  return { kind: 'failed', type: 'unsupported', message: 'this agent keeps no images of hosts' };
}

/** Rejects with AttemptEnd when a credential has not arrived. */
async function wantedDisk(
  parts: HostImageParts,
  { step, deployment }: agent.RunStep,
  found: ImageArchitecture | undefined,
  { credential }: Pick<OperationContext, 'credential'>,
): Promise<WantedHostImage | FailedAttempt> {
  if (deployment?.image === undefined) {
    return { kind: 'failed', type: 'invalidArgument', message: `${step} names no image` };
  }
  return wantedImage(deployment.image, found ?? parts.architecture, 'disk', credential);
}

function imageOfOrder(
  parts: HostImageParts,
  { deployment }: agent.RunStep,
  { image: { disk } }: PinnedHostImage,
): ImageOfOrder | undefined {
  if (disk === undefined || deployment === undefined) return undefined;
  const { id, deploy } = deployment;
  // A host whose proof is its power, or whose image gets no data of ours, need not call.
  const isSilent =
    deploy?.proof === DeployProof.POWER_ON || deploy?.firstBoot?.format === FirstBootFormat.NONE;
  return { imageFile: imageFile(disk), phoneHomePath: isSilent ? '' : parts.phoneHomePath(id) };
}

function imageFile(disk: DiskImage): ImageOfOrder['imageFile'] {
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
