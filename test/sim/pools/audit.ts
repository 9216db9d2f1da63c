/**
 * P4 What each replica tells of a pool's history is what the ledger says, counted anew: different
 * hosts for each digest, the newest first, and the hosts of the pool that are on it now.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type DeployHistoryEntry, store as wire } from '@rackwright/messages';
import { ask, counterOf } from '../operators/counter.ts';
import { keptHosts } from '../operators/records.ts';
import type { WorldView } from '../view.ts';

/** Asks each replica that is up; what has changed meanwhile says nothing. */
export async function auditHistory(view: WorldView, poolId: string): Promise<void> {
  const parent = `pools/${poolId}`;
  for (const replica of view.replicas()) {
    const disk = view.storeDisk();
    const before = disk.latest();
    const expected = expectedHistory(view, poolId);
    if (expected === undefined) return;
    const answer = await ask(view, () =>
      counterOf(view, replica).pools.listDeployHistory({ parent }),
    );
    const isSame = view.storeDisk() === disk && disk.latest() === before;
    if (answer.kind !== 'accepted' || !isSame) continue;
    view.count('history compared');
    const told = answer.value.entries.map(lineOf);
    if (told.join() === expected.join()) continue;
    view.found('P4', `${replica.name} tells of ${parent}: ${told}; the ledger says ${expected}`);
  }
}

/** As the ledger has it; undefined: there is no such pool. */
function expectedHistory(view: WorldView, poolId: string): string[] | undefined {
  const [pool] = view.storeDisk().lastChanges(`pools.${poolId}`);
  if (pool?.kind !== 'put') return undefined;
  const record = fromBinary(wire.PoolRecordSchema, pool.value);
  const entries = view
    .storeDisk()
    .lastChanges(`deployments.${record.pool?.uid}`)
    .flatMap((change) =>
      change.kind === 'put' ? fromBinary(wire.DeploymentRecordSchema, change.value) : [],
    );
  const members = new Set(record.members.map(({ hostUid }) => hostUid));
  const held = keptHosts(view).flatMap(({ host, status }) =>
    members.has(host.uid) ? (status.image.split('@')[1] ?? '') : [],
  );
  const byDigest = [...Map.groupBy(entries, ({ digest }) => digest)].map(([digest, group]) => {
    const times = group.map(({ endTime }) => (endTime === undefined ? 0 : timestampMs(endTime)));
    const hosts = new Set(group.map(({ hostUid }) => hostUid)).size;
    const lastMs = Math.max(...times);
    const now = held.filter((each) => each === digest).length;
    return { lastMs, digest, line: `${digest} ${hosts} ${now} ${lastMs}` };
  });
  return byDigest
    .toSorted((a, b) => b.lastMs - a.lastMs || (a.digest < b.digest ? -1 : 1))
    .map(({ line }) => line);
}

function lineOf({ digest, hostCount, currentHosts, lastDeployed }: DeployHistoryEntry): string {
  const lastMs = lastDeployed === undefined ? 0 : timestampMs(lastDeployed);
  return `${digest} ${hostCount} ${currentHosts} ${lastMs}`;
}
