/** Runs that wrote an image, in the form for a pool's ledger and failures. Pure. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type RolloutSlot, store as wire } from '@rackwright/messages';
import { digestInImage } from '../policy/image-name.ts';

/** A run that wrote an image. */
export type DeploymentFacts = Pick<
  RolloutSlot,
  'host' | 'hostUid' | 'image' | 'run' | 'version' | 'reference'
>;

/** The entry of the ledger, with the time at which the host was first seen healthy on the image. */
export function ledgerEntryOf(
  { pool }: wire.PoolRecord,
  { host, hostUid, image, run, version, reference }: DeploymentFacts,
  atMs: number,
): wire.DeploymentRecord {
  return create(wire.DeploymentRecordSchema, {
    ...{ pool: pool?.name ?? '', poolUid: pool?.uid ?? '' },
    ...{ host, hostUid, image, run, version, reference },
    digest: digestInImage(image),
    endTime: timestampFromMs(atMs),
  });
}

export function writtenBy({ run, image, version, reference }: DeploymentFacts) {
  return { run, image, version, reference };
}
