/** Brings an image into the rack's cache, whole and verified, in its turn. */
import type { agent } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import { type HeldHostImage, wantedImage } from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import type { HostImageParts } from './host-image.ts';
import { notHeld, progressWords } from './host-image-result.ts';
import { turnLimit } from './time-limit.ts';

/** `judge`: the result, once all that is needed of the image is here. */
export async function bringImage(
  { architecture, clock, images }: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  needs: 'disk' | 'netboot',
  context: OperationContext,
  judge: (held: HeldHostImage) => FinalResult,
): Promise<FinalResult> {
  const { step, deployment } = request;
  if (deployment?.image === undefined) return failure('invalidArgument', `${step} names no image`);
  const wanted = await wantedImage(deployment.image, architecture, needs, context.credential);
  if ('type' in wanted) return wanted;
  const limit = turnLimit(clock, request, context);
  let held: HeldHostImage | undefined;
  try {
    held = await images.hold(operation.hostUid, wanted, limit.signal, (progress) => {
      if (progress.phase !== 'queued') limit.begin();
      context.continuing({ step, ...progressWords(progress) });
    });
    return judge(held);
  } catch (error) {
    return notHeld(error, context, limit);
  } finally {
    limit.end();
    held?.release();
  }
}
