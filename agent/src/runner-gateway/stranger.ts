/**
 * The runner of a machine that is no host: it is asked for its inventory, once, and for nothing
 * else. It may stay connected; nothing more is sent to it.
 */
import { toBinary } from '@bufbuild/protobuf';
import {
  type agent,
  type Inventory,
  InventorySchema,
  type OperationId,
  type RunnerSessionId,
  type runner,
} from '@rackwright/messages';
import { boundResult, resultFromWire } from '@rackwright/results';
import type { ToRunner } from './link.ts';
import { MessageQueue } from './message-queue.ts';

/** The gateway's reports about such boots. */
export interface DiscoveryObserver {
  addLink(operationId: OperationId, close: () => void): void;
  removeLink(operationId: OperationId, close: () => void): void;
  isAwaited(operationId: OperationId): boolean;
  reportInventory(operationId: OperationId, inventory: Inventory, bmcAddress: string): void;
  endWithoutInventory(operationId: OperationId, why: string): void;
}

export interface DiscoveredBoot {
  readonly operationId: OperationId;
  readonly runnerSession: RunnerSessionId;
  readonly bmcAddress: string;
}

/** Largest inventory that is taken: it becomes a record. */
const inventoryBytesMax = 160 * 1024;
const outgoingMessagesMax = 16;

/** The rest of the runner's stream, after its Hello. */
export async function* serveDiscovered(
  observer: DiscoveryObserver,
  boot: DiscoveredBoot,
  incoming: AsyncIterator<runner.SessionRequest>,
): AsyncGenerator<{ message: ToRunner }, void, undefined> {
  const { operationId, runnerSession } = boot;
  const outgoing = new MessageQueue<{ message: ToRunner }>(outgoingMessagesMax);
  const close = (): void => outgoing.end();
  yield { message: { case: 'accepted', value: { runnerSession, hostName: 'discovered' } } };
  observer.addLink(operationId, close);
  if (observer.isAwaited(operationId)) {
    const kind = { case: 'inspect', value: { bootOperationId: operationId } } as const;
    outgoing.push({ message: { case: 'order', value: { operationId, kind } } });
  }
  readReports(observer, boot, incoming, outgoing).then(close, close);
  try {
    yield* outgoing;
  } finally {
    observer.removeLink(operationId, close);
  }
}

async function readReports(
  observer: DiscoveryObserver,
  boot: DiscoveredBoot,
  incoming: AsyncIterator<runner.SessionRequest>,
  outgoing: MessageQueue<{ message: ToRunner }>,
): Promise<void> {
  for (;;) {
    const next = await incoming.next();
    if (next.done === true) return;
    const { message } = next.value;
    if (message.case !== 'report' || message.value.operationId !== boot.operationId) continue;
    if (!takeReport(observer, boot, message.value)) continue;
    const { operationId } = boot;
    outgoing.push({ message: { case: 'reportReceived', value: { operationId } } });
  }
}

/** Whether it was a final one. */
function takeReport(
  observer: DiscoveryObserver,
  boot: DiscoveredBoot,
  report: agent.Report,
): boolean {
  const { operationId, bmcAddress } = boot;
  const decoded = resultFromWire(report);
  const result = decoded.kind === 'unsupported' ? decoded : boundResult(decoded);
  switch (result.kind) {
    case 'continuing':
    case 'hostUpdated':
      return false;
    case 'complete': {
      const inventory = result.observations?.inventory;
      if (inventory === undefined) observer.endWithoutInventory(operationId, 'its report has none');
      else if (toBinary(InventorySchema, inventory).length > inventoryBytesMax) {
        observer.endWithoutInventory(operationId, `it has more than ${inventoryBytesMax} bytes`);
      } else observer.reportInventory(operationId, inventory, bmcAddress);
      return true;
    }
    case 'unsupported':
      observer.endWithoutInventory(operationId, result.problem);
      return true;
    default:
      observer.endWithoutInventory(operationId, result.message);
      return true;
  }
}
