/** What is asked for of a deployment becomes what the next run of the host carries out. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type DeploySpec, DeploySpecSchema, RunKind } from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import type { HostRequest } from '../pass/types.ts';

type Deployment = Extract<HostRequest, { readonly image: string }>;

/** How the host is to be deployed: as is said, or as it was before. */
export function wantedDeploy(pass: Pass, request: Deployment): DeploySpec {
  const kept = request.kind === 'reimage' ? keptDeploy(pass) : undefined;
  return clone(DeploySpecSchema, request.deploy ?? kept ?? create(DeploySpecSchema));
}

/** What it runs was deployed so, or what was to replace that and failed. */
function keptDeploy({ record, status }: Pass): DeploySpec | undefined {
  return status.image === '' ? (record.deploy ?? status.deploy) : status.deploy;
}

/** The record says what is to come onto the host. */
export function takeDeployment(pass: Pass, request: Deployment): void {
  pass.record.deploy = wantedDeploy(pass, request);
  pass.record.image = request.image;
  delete pass.record.deployNotAfter;
  const { notAfterMs } = request;
  if (notAfterMs !== undefined) pass.record.deployNotAfter = timestampFromMs(notAfterMs);
}

/** The run of a deployment. */
export function kindOfDeployment({ kind }: Deployment): RunKind {
  return kind === 'provision' ? RunKind.PROVISION : RunKind.REIMAGE;
}
