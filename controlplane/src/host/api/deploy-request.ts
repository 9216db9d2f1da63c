/** Validates a deployment request and converts it into a request to the host loop. */
import type { DeploySpec } from '@rackwright/messages';
import { Violations } from '../../call/violations.ts';
import { imageNameProblem } from '../../images/index.ts';
import type { HostRequest } from '../index.ts';
import { checkDeploySpec } from '../spec/deploy-spec.ts';

const imageCharactersMax = 2_048;

interface DeploymentRequest {
  readonly image: string;
  readonly deploy?: DeploySpec | undefined;
}

/** Validates the request, with its fields below `path` ("provision."). Throws `invalidArgument`. */
export function checkDeployment({ image, deploy }: DeploymentRequest, path = ''): void {
  const violations = new Violations();
  violations.addIf(`${path}image`, problemOf(image));
  if (deploy !== undefined) checkDeploySpec(`${path}deploy`, deploy, violations);
  violations.throwIfAny();
}

function problemOf(image: string): string | undefined {
  if (image.length <= imageCharactersMax) return imageNameProblem(image);
  return `has ${image.length} characters; at most ${imageCharactersMax} are taken`;
}

/** The request for the host loop, once the image is known by its digest. */
export function deployRequest(
  kind: 'provision' | 'reimage',
  image: string,
  deploy: DeploySpec | undefined,
): Extract<HostRequest, { readonly image: string }> {
  return { kind, image, ...(deploy === undefined ? {} : { deploy }) };
}
