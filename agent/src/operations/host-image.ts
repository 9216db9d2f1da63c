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
import { SlotLimit } from './time-limit.ts';

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
  const limit = new SlotLimit(parts.clock, request, context);
  let isOrdered = false;
  const report = (progress: HostImageProgress): void => {
    if (progress.phase !== 'queued') limit.begin();
    // From then on the runner reports the progress.
    if (isOrdered) return;
    context.reportProgress({ step: request.step, ...progressOf(progress) });
  };
  let coming: ComingHostImage;
  try {
    coming =
      takeCarried(parts, operation, request, wanted) ??
      (await pinImage(parts, operation, request, wanted, limit.signal, report));
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

/** Resolves as soon as something may be done with it (W1, W4). */
function pinImage(
  { images }: HostImageParts,
  { hostUid }: agent.Operation,
  { deployment }: agent.RunStep,
  wanted: WantedHostImage,
  signal: AbortSignal,
  report: (progress: HostImageProgress) => void,
): Promise<ComingHostImage> {
  switch (pinMethodOf(deployment)) {
    case 'begin':
      return images.begin(hostUid, wanted, signal, report);
    case 'pin':
      return images.pin(hostUid, wanted, signal, report);
  }
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
  const kept = new KeptImage(parts, operation, request, context, first);
  try {
    const result = await work(() => kept.image, { ...context, signal: kept.signal });
    if (isFinal(result) && mayBeTheImage(result)) kept.doubt();
    if (kept.fault === undefined || context.signal.aborted) return result;
    return withImageFault(kept.fault, result);
  } finally {
    await kept.end();
  }
}

/** Between two tries to pin an image again. */
const pinAgainMs = 2_000;

/** An image that is pinned, and again after each failure, until `end` or a fault of its own. */
class KeptImage {
  /** Aborted with the operation, by `end`, and by a fault: then the runner has to stop (W3). */
  readonly signal: AbortSignal;
  /** Undefined until it is pinned. */
  image: ImageOfOrder | undefined;
  /** Why it cannot be had. */
  fault: OciError | undefined;
  readonly #parts: HostImageParts;
  readonly #operation: agent.Operation;
  readonly #request: agent.RunStep;
  readonly #context: OperationContext;
  readonly #over = new AbortController();
  readonly #keeping: Promise<void>;
  #pinned: PinnedHostImage | undefined;

  constructor(
    parts: HostImageParts,
    operation: agent.Operation,
    request: agent.RunStep,
    context: OperationContext,
    first: ComingHostImage | undefined,
  ) {
    this.#parts = parts;
    this.#operation = operation;
    this.#request = request;
    this.#context = context;
    this.signal = AbortSignal.any([context.signal, this.#over.signal]);
    this.#keeping = this.#keep(first);
  }

  doubt(): void {
    this.#pinned?.doubt();
  }

  async end(): Promise<void> {
    this.#over.abort();
    await this.#keeping;
  }

  /** Never rejects. */
  async #keep(first: ComingHostImage | undefined): Promise<void> {
    if (first !== undefined) await this.#hold(first);
    while (!this.signal.aborted) await this.#pinAndHold();
  }

  async #pinAndHold(): Promise<void> {
    const { signal } = this;
    let coming: ComingHostImage;
    try {
      const wanted = await wantedDisk(this.#parts, this.#request, undefined, this.#context);
      // Nothing can be pinned; a runner that has its order goes on with it.
      if ('type' in wanted) return await waitForAbort(signal);
      coming = await pinImage(this.#parts, this.#operation, this.#request, wanted, signal, ignore);
    } catch (error) {
      return this.#noteFailure(error);
    }
    await this.#hold(coming);
  }

  /** Releases it in the end. */
  async #hold(coming: ComingHostImage): Promise<void> {
    try {
      this.#pinned = coming;
      this.image = imageOfOrder(this.#parts, this.#request, coming);
      await waitUntilWhole(coming, this.signal);
      await waitForAbort(this.signal);
    } catch (error) {
      await this.#noteFailure(error);
    } finally {
      coming.release();
    }
  }

  async #noteFailure(error: unknown): Promise<void> {
    if (this.signal.aborted) return;
    const isFinal = isOciError(error) && resultOfHostImage(error).kind === 'failed';
    if (isFinal || error instanceof FetchRestarted) {
      this.fault = error;
      this.#over.abort();
      return;
    }
    // The registry is unreachable, or a credential has not arrived yet.
    await pause(this.#parts.clock, pinAgainMs, this.signal);
  }
}

function ignore(): void {}

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
