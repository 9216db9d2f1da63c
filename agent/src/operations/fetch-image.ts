/**
 * Brings the image of a deployment into the rack's cache while its host still runs its old one. So
 * an image that cannot be fetched, cannot be booted, or is not for the machines of this rack, takes
 * no host out of service. The time of the fetch is no downtime.
 */
import { type agent, DeployProof, FirstBootFormat } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import { isNoCloud, netbootArguments } from '../deploy/index.ts';
import type { PinnedHostImage } from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { failure } from './bmc-access.ts';
import { fetchIntoCache } from './bring-image.ts';
import type { HostImageParts } from './host-image.ts';

/** The image's disk, or the netboot files of a host without one. */
export async function fetchImage(
  parts: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const { deployment } = request;
  if (deployment?.deploy?.netboot !== true) {
    return fetchIntoCache(parts, operation, request, 'disk', context, judgeDisk);
  }
  const problem = firstBootProblem(deployment);
  if (problem !== undefined) return failure('invalidArgument', problem);
  return fetchIntoCache(parts, operation, request, 'netboot', context, judgeNetboot);
}

/** A raw, uncompressed file must match its declared content; the runner checks any other. */
function judgeDisk({ image: { disk } }: PinnedHostImage): FinalResult {
  if (disk?.format !== 'raw' || disk.compression !== 'none') return { kind: 'complete' };
  const { blob, contentBytes = blob.sizeBytes, contentDigest = blob.digest } = disk;
  const isSame = contentBytes === blob.sizeBytes && contentDigest === blob.digest;
  if (isSame) return { kind: 'complete' };
  const file = `${blob.sizeBytes} bytes and ${blob.digest}`;
  const declared = `${contentBytes} bytes and ${contentDigest}`;
  return failure(
    'badImage',
    `the image is raw, of ${file}, but declares as its content ${declared}`,
  );
}

function judgeNetboot({ image }: PinnedHostImage): FinalResult {
  const parsed = netbootArguments(image.netboot?.kernelArguments ?? '');
  return parsed.kind === 'bad' ? failure('badImage', parsed.problem) : { kind: 'complete' };
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
