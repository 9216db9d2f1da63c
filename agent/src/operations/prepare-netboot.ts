/**
 * Brings what a host is to boot over the network into the rack's cache, and tells what is wrong
 * with it before the host is switched on.
 */
import { type agent, DeployProof, FirstBootFormat } from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import { isNoCloud, netbootArguments } from '../deploy/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { bringImage } from './bring-image.ts';
import type { HostImageParts } from './host-image.ts';

export const prepareNetbootStep = 'deploy.prepare_netboot';

export async function prepareNetboot(
  parts: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const { deployment } = request;
  const problem = deployment && firstBootProblem(deployment);
  if (problem !== undefined) return failure('invalidArgument', problem);
  return bringImage(parts, operation, request, 'netboot', context, ({ image }) => {
    const words = netbootArguments(image.netboot?.kernelArguments ?? '');
    return words.kind === 'bad' ? failure('badImage', words.problem) : { kind: 'complete' };
  });
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
