/**
 * Brings what a host is to boot over the network into the rack's cache, and tells what is wrong
 * with it before the host is switched on.
 */
import { type agent, DeployProof, FirstBootFormat } from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import { isNoCloud, netbootArguments } from '../deploy/index.ts';
import { type HeldHostImage, wantedImage } from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import type { HostImageParts } from './host-image.ts';
import { notHeld, progressWords } from './host-image-result.ts';
import { turnLimit } from './time-limit.ts';

export const prepareNetbootStep = 'deploy.prepare_netboot';

export async function prepareNetboot(
  parts: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const { step, deployment } = request;
  if (deployment?.image === undefined) return failure('invalidArgument', `${step} names no image`);
  const problem = firstBootProblem(deployment);
  if (problem !== undefined) return failure('invalidArgument', problem);
  const { architecture, clock, images } = parts;
  const { credential } = context;
  const wanted = await wantedImage(deployment.image, architecture, 'netboot', credential);
  if ('type' in wanted) return wanted;
  const limit = turnLimit(clock, request, context);
  let held: HeldHostImage | undefined;
  try {
    held = await images.hold(operation.hostUid, wanted, limit.signal, (progress) => {
      if (progress.phase !== 'queued') limit.begin();
      context.continuing({ step, ...progressWords(progress) });
    });
    const words = netbootArguments(held.image.netboot?.kernelArguments ?? '');
    return words.kind === 'bad' ? failure('badImage', words.problem) : { kind: 'complete' };
  } catch (error) {
    return notHeld(error, context, limit);
  } finally {
    limit.end();
    held?.release();
  }
}

function firstBootProblem(deployment: agent.Deployment): string | undefined {
  if (isNoCloud(deployment)) return undefined;
  const { deploy } = deployment;
  const none = deploy?.firstBoot?.format === FirstBootFormat.NONE;
  if (none && deploy?.proof === DeployProof.POWER_ON) return undefined;
  return none
    ? 'deploy.first_boot.format: without first-boot data the host cannot be told where to phone ' +
        'home; choose NoCloud, or the proof POWER_ON'
    : 'deploy.first_boot.format: a host without a disk reads NoCloud over HTTP, no config drive';
}
