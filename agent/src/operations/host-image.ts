/**
 * An image on its way onto a host's disk: held in the rack's cache while the runner writes it.
 *
 * W1 The runner is ordered when the image is here whole and proved, and not before: an image that
 *    turns out wrong, or cannot be had to its end, costs no disk.
 * W2 After a restart of ours the image is held again while the runner that still has the order is
 *    looked for: it reads on where it was, and is not stopped for what may pass.
 */
import { type agent, type DeploymentId, DeployProof, FirstBootFormat } from '@rackwright/messages';
import { type DiskImage, isOciError, type OciError } from '@rackwright/oci';
import { type Clock, pause } from '@rackwright/platform';
import type { Failed, FinalResult } from '@rackwright/results';
import {
  type Architecture,
  aborted,
  type HeldHostImage,
  type HostImageProgress,
  type HostImages,
  type WantedHostImage,
  wantedImage,
} from '../images/index.ts';
import type { ImageOfOrder } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { mayBeTheImage, notHeld, progressWords, resultOfHostImage } from './host-image-result.ts';
import { turnLimit } from './time-limit.ts';

export interface HostImageParts {
  readonly images: Pick<HostImages, 'hold'>;
  readonly clock: Clock;
  /** Of the hosts that boot here, where the runner says nothing of its own. */
  readonly architecture: Architecture;
  /** Where the host of a deployment calls when it runs. */
  readonly phoneHomePath: (deploymentId: DeploymentId) => string;
}

/** Orders the step from the runner. */
export type OrderWithImage = (
  image: ImageOfOrder,
  context: OperationContext,
) => Promise<FinalResult>;

/**
 * Takes up the order that the runner may still be at work on; one that has never had it is given it
 * once the image is there.
 */
export type ResumeWithImage<Result> = (
  image: () => ImageOfOrder | undefined,
  context: OperationContext,
) => Promise<FinalResult | Result>;

/** Runs `order` while the image is held; answers for an image that cannot be had. */
export async function withHostImage(
  parts: HostImageParts | undefined,
  operation: agent.Operation,
  request: agent.RunStep,
  found: Architecture | undefined,
  context: OperationContext,
  order: OrderWithImage,
): Promise<FinalResult> {
  if (parts === undefined) return noImagesKept();
  const wanted = await wantedDisk(parts, request, found, context);
  if ('type' in wanted) return wanted;
  const limit = turnLimit(parts.clock, request, context);
  const told = (progress: HostImageProgress): void => {
    if (progress.phase !== 'queued') limit.begin();
    context.continuing({ step: request.step, ...progressWords(progress) });
  };
  let held: HeldHostImage;
  try {
    held = await parts.images.hold(operation.hostUid, wanted, limit.signal, told);
  } catch (error) {
    return notHeld(error, context, limit);
  } finally {
    limit.end();
  }
  try {
    const image = imageOfOrder(parts, request, held);
    if (image === undefined) return failure('badImage', 'the image has no disk');
    const result = await order(image, { ...context, remainingMs: () => limit.remainingMs() });
    if (mayBeTheImage(result)) held.doubt();
    return result;
  } finally {
    held.release();
  }
}

/** The image is held meanwhile as soon as it can be had (W2). */
export async function withHostImageAgain<Result>(
  parts: HostImageParts | undefined,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  resume: ResumeWithImage<Result>,
): Promise<FinalResult | Result> {
  if (parts === undefined) return noImagesKept();
  const stop = new AbortController();
  const over = new AbortController();
  let broken: OciError | undefined;
  let image: ImageOfOrder | undefined;
  let again: HeldHostImage | undefined;
  const within = { ...context, signal: AbortSignal.any([context.signal, over.signal]) };
  const holding = holdAgain(parts, operation, request, within, {
    held: (held) => {
      again = held;
      image = imageOfOrder(parts, request, held);
    },
    broken: (error) => {
      broken = error;
      stop.abort();
    },
  });
  try {
    const signal = AbortSignal.any([context.signal, stop.signal]);
    const result = await resume(() => image, { ...context, signal });
    if (isFinal(result) && mayBeTheImage(result)) again?.doubt();
    return broken === undefined || context.signal.aborted ? result : because(broken, result);
  } finally {
    over.abort();
    await holding;
  }
}

interface HoldEars {
  held(image: HeldHostImage): void;
  broken(error: OciError): void;
}

/** Between two tries to hold an image again. */
const holdAgainMs = 2_000;

/** Never rejects. Holds it until the signal is aborted, or until it is known never to be had. */
async function holdAgain(
  parts: HostImageParts,
  { hostUid }: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
  ears: HoldEars,
): Promise<void> {
  const { signal } = context;
  while (!signal.aborted) {
    let held: HeldHostImage | undefined;
    try {
      const wanted = await wantedDisk(parts, request, undefined, context);
      if ('type' in wanted) return;
      held = await parts.images.hold(hostUid, wanted, signal, () => {});
      ears.held(held);
      await aborted(signal);
    } catch (error) {
      const isFinal = isOciError(error) && resultOfHostImage(error).kind === 'failed';
      if (isFinal && !signal.aborted) return ears.broken(error);
      // A registry that is away, or a credential that has not come yet.
      await pause(parts.clock, holdAgainMs, signal);
    } finally {
      held?.release();
    }
  }
}

/** What was wrong with the image, in place of what the runner has made of that. */
function because<Result>(broken: OciError, result: FinalResult | Result): FinalResult | Result {
  if (isFinal(result) && result.kind === 'complete') return result;
  const its = resultOfHostImage(broken);
  // The runner was stopped: before it had begun, as it says itself, or nobody knows.
  if (!isFinal(result) || result.kind !== 'failed') return its;
  if (result.disksUntouched === true) {
    const isTold = its.kind === 'failed' || its.kind === 'transientError';
    return isTold ? { ...its, disksUntouched: true } : its;
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

function noImagesKept(): Failed {
  return { kind: 'failed', type: 'unsupported', message: 'this agent keeps no images of hosts' };
}

/** Rejects with AttemptEnd when a credential has not come. */
async function wantedDisk(
  parts: HostImageParts,
  { step, deployment }: agent.RunStep,
  found: Architecture | undefined,
  { credential }: Pick<OperationContext, 'credential'>,
): Promise<WantedHostImage | Failed> {
  if (deployment?.image === undefined) {
    return { kind: 'failed', type: 'invalidArgument', message: `${step} names no image` };
  }
  return wantedImage(deployment.image, found ?? parts.architecture, 'disk', credential);
}

function imageOfOrder(
  parts: HostImageParts,
  { deployment }: agent.RunStep,
  { image: { disk } }: HeldHostImage,
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
