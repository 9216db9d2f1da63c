/** Runs that wrote an image, as the ledger and the failures of a pool keep them. Pure. */
import { create } from '@bufbuild/protobuf';
import { type RolloutSlot, store as wire } from '@rackwright/api';
import { digestOf } from './image-name.ts';

/** A run that wrote an image. */
export type Written = Pick<
  RolloutSlot,
  'host' | 'hostUid' | 'image' | 'run' | 'version' | 'reference' | 'runEndTime'
>;

/** The entry of the ledger: nothing in it depends on when or by whom it is made. */
export function deploymentOf({ pool }: wire.PoolRecord, from: Written): wire.DeploymentRecord {
  const { host, hostUid, image, run, version, reference, runEndTime } = from;
  return create(wire.DeploymentRecordSchema, {
    ...{ pool: pool?.name ?? '', poolUid: pool?.uid ?? '' },
    ...{ host, hostUid, image, run, version, reference },
    digest: digestOf(image),
    ...(runEndTime === undefined ? {} : { endTime: runEndTime }),
  });
}

export function writtenBy({ run, image, version, reference, runEndTime }: Written) {
  const end = runEndTime === undefined ? {} : { runEndTime };
  return { run, image, version, reference, ...end };
}
