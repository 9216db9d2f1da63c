/**
 * Brings the image of a deployment into the rack's cache while its host still runs what it ran:
 * what cannot be had, or is not for the machines of this rack, takes no host out of service, and
 * the time that it takes to come is no time without service.
 */
import type { agent } from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { bringImage } from './bring-image.ts';
import type { HostImageParts } from './host-image.ts';
import { prepareNetboot } from './prepare-netboot.ts';

/** The image's disk, or what a host boots over the network in place of one. */
export function fetchImage(
  parts: HostImageParts,
  operation: agent.Operation,
  request: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  return request.deployment?.deploy?.netboot === true
    ? prepareNetboot(parts, operation, request, context)
    : bringImage(parts, operation, request, 'disk', context, () => ({ kind: 'complete' }));
}
