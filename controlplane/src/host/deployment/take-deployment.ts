/** Stores a requested deployment for the next run of the host. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type DeploySpec, DeploySpecSchema, RunKind } from '@rackwright/messages';
import type { Pass, PassView } from '../pass/pass.ts';
import type { HostRequest } from '../pass/types.ts';

type Deployment = Extract<HostRequest, { readonly image: string }>;

/** How to deploy the host: as requested, or as before. */
export function wantedDeploy(pass: PassView, request: Deployment): DeploySpec {
  const kept = request.kind === 'reimage' ? keptDeploy(pass) : undefined;
  return clone(DeploySpecSchema, request.deploy ?? kept ?? create(DeploySpecSchema));
}

/** The settings of its present image, or of a failed replacement. */
function keptDeploy({ record, status }: PassView): DeploySpec | undefined {
  return status.image === '' ? (record.deploy ?? status.deploy) : status.deploy;
}

/** Records what is to be deployed. */
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
