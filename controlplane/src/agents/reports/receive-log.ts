/** The output of a step's program, as an agent reports it. */
import type { agent, RackId } from '@rackwright/messages';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { ReleaseSlot } from '../base/rack-slots.ts';
import { isPresent } from '../hello/welcome.ts';

/** A rack may report only for its own hosts, and only for their present operations. */
export async function receiveLog(
  { hosts, stepLogs, store }: Pick<SessionDependencies, 'hosts' | 'stepLogs' | 'store'>,
  rackId: RackId,
  piece: agent.StepLog,
  withSlot: (work: (over: ReleaseSlot) => unknown) => Promise<void>,
): Promise<void> {
  const { hostUid, operationId } = piece;
  const hostId = hosts.hostIdOfUid(hostUid, rackId);
  if (stepLogs === undefined || hostId === undefined) return;
  if (stepLogs.isOf(hostUid, operationId)) return stepLogs.take(piece);
  await withSlot(async (over) => {
    try {
      if (await isPresent(store, hostId, operationId)) stepLogs.take(piece);
    } finally {
      over();
    }
  });
}
