/**
 * The disks that a rollout would overwrite and those that would stay, as predicted for its hosts.
 */
import { create } from '@bufbuild/protobuf';
import {
  DeploySpecSchema,
  type PlannedRollout,
  type RolloutPlan,
  RunKind,
} from '@rackwright/messages';
import type { RpcDependencies } from '../../call/ports.ts';
import { isWrittenOver, planFor, staysAsItIs } from '../../host/index.ts';
import { idOf } from '../../records/index.ts';
import type { PoolViewInputs } from '../index.ts';

/**
 * Adds the disks of each host; a host with unknown disks adds none. When only the runner can select
 * the disk, its candidates count as neither lost nor kept.
 */
export async function addDisks(
  deps: Pick<RpcDependencies, 'hosts' | 'actor'>,
  plan: RolloutPlan,
  record: PoolViewInputs['record'],
): Promise<RolloutPlan> {
  const deploy = record.pool?.spec?.deploy ?? create(DeploySpecSchema);
  for (const planned of plan.hosts) {
    if (planned.toImage !== '') await addDisksOf(deps, planned, deploy);
  }
  return plan;
}

async function addDisksOf(
  { hosts, actor }: Pick<RpcDependencies, 'hosts' | 'actor'>,
  planned: PlannedRollout,
  deploy: NonNullable<NonNullable<PoolViewInputs['record']['pool']>['spec']>['deploy'] & object,
): Promise<void> {
  const kind = planned.kind === RunKind.REIMAGE ? 'reimage' : 'provision';
  const request = { kind, image: planned.toImage, deploy } as const;
  const draft = await hosts.consider(idOf(planned.host), (record, snapshot) => {
    return planFor(record, snapshot, request, undefined, { actor });
  });
  if (draft === undefined || 'code' in draft) return;
  for (const device of draft.plan.devices) {
    const name = device.serial || device.wwn || device.kernelName;
    if (isWrittenOver(device)) planned.lostDisks.push(name);
    else if (staysAsItIs(device)) planned.keptDisks.push(name);
  }
}
