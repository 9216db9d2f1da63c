/**
 * Brings an image into the rack's cache, when a slot is free. It waits until the image is whole and
 * verified. For a host whose disks hold nothing worth keeping it waits only until the fetch has
 * begun; the fetch then goes on while the host boots.
 */
import type { agent } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import { type ComingHostImage, type PinnedHostImage, wantedImage } from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { carriedKey, type HostImageParts, pinMethodOf } from './host-image.ts';
import { notPinned, progressOf } from './host-image-result.ts';
import { SlotLimit } from './time-limit.ts';

/** `judge`: the result, by the image's properties once it is pinned. */
export async function fetchIntoCache(
  { architecture, carriedOn, clock, images }: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  needs: 'disk' | 'netboot',
  context: OperationContext,
  judge: (pinned: PinnedHostImage) => FinalResult,
): Promise<FinalResult> {
  const { step, deployment } = request;
  if (deployment?.image === undefined) return failure('invalidArgument', `${step} names no image`);
  const wanted = await wantedImage(deployment.image, architecture, needs, context.credential);
  if ('type' in wanted) return wanted;
  const limit = new SlotLimit(clock, request, context);
  const way = needs === 'disk' ? pinMethodOf(deployment) : 'pin';
  let isOver = false;
  let isCarried = false;
  let pinned: ComingHostImage | undefined;
  try {
    pinned = await images[way](operation.hostUid, wanted, limit.signal, (progress) => {
      if (isOver) return;
      if (progress.phase !== 'queued') limit.begin();
      context.reportProgress({ step, ...progressOf(progress) });
    });
    const result = judge(pinned);
    if (way === 'pin' || result.kind !== 'complete') return result;
    carriedOn.carry(carriedKey(operation, deployment, architecture), pinned, limit);
    isCarried = true;
    return result;
  } catch (error) {
    return notPinned(error, context, limit);
  } finally {
    isOver = true;
    if (!isCarried) {
      limit.end();
      pinned?.release();
    }
  }
}
