/** The snapshot for a decision about a pool that selects these hosts. */
import { create } from '@bufbuild/protobuf';
import { type HostName, store as wire } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import type { StateStore } from '@rackwright/store';
import { FleetView } from '../../fleet-view/index.ts';
import { type PoolSnapshot, readSnapshot } from './snapshot.ts';

export async function snapshotOf(
  store: StateStore,
  hostNames: readonly HostName[],
  nowMs: number,
): Promise<PoolSnapshot> {
  const log = { info: () => undefined, warn: () => undefined };
  const fleetView = new FleetView({ store, clock: nodeClock(), log, retryDelayMs: 1_000 });
  const pool = { name: 'pools/p', spec: { hosts: { names: [...hostNames] } } };
  try {
    return await readSnapshot({ store, fleetView }, create(wire.PoolRecordSchema, { pool }), nowMs);
  } finally {
    fleetView.stop();
  }
}
