/** What is asked for of a deployment becomes what the next run of the host carries out. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type DeploySpec, DeploySpecSchema, RunKind } from '@rackwright/messages';
import type { Turn } from '../turn/turn.ts';
import type { HostRequest } from '../turn/types.ts';

type Deployment = Extract<HostRequest, { readonly image: string }>;

/** How the host is to be deployed: as is said, or as it was before. */
export function wantedDeploy(turn: Turn, request: Deployment): DeploySpec {
  const kept = request.kind === 'reimage' ? keptDeploy(turn) : undefined;
  return clone(DeploySpecSchema, request.deploy ?? kept ?? create(DeploySpecSchema));
}

/** What it runs was deployed so, or what was to replace that and failed. */
function keptDeploy({ record, status }: Turn): DeploySpec | undefined {
  return status.image === '' ? (record.deploy ?? status.deploy) : status.deploy;
}

/** The record says what is to come onto the host. */
export function takeDeployment(turn: Turn, request: Deployment): void {
  turn.record.deploy = wantedDeploy(turn, request);
  turn.record.image = request.image;
  delete turn.record.deployNotAfter;
  const { notAfterMs } = request;
  if (notAfterMs !== undefined) turn.record.deployNotAfter = timestampFromMs(notAfterMs);
}

/** The run of a deployment. */
export function kindOfDeployment({ kind }: Deployment): RunKind {
  return kind === 'provision' ? RunKind.PROVISION : RunKind.REIMAGE;
}
