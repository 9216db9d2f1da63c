/** Steps that look at the host from the runner, and what is kept of what they see. */

import { create, toBinary } from '@bufbuild/protobuf';
import {
  agent,
  HostState,
  type Inventory,
  InventorySchema,
  type RunFailure,
  RunKind,
} from '@rackwright/messages';
import { protocolOf } from '../../bmc/protocols.ts';
import { checkCertified, forgetAbsent, uncertifiedDevice } from '../../erasure/certify.ts';
import { planDevices } from '../../erasure/device-plan.ts';
import { noteElsewhere } from '../../erasure/elsewhere.ts';
import { settleHardware } from '../../erasure/hardware.ts';
import { inspectTimeoutMs } from '../../erasure/times.ts';
import { withEarlierNeighbors } from '../../hardware/neighbors.ts';
import { bootOperationId } from '../../operation/boots.ts';
import { invalidResult } from '../../turn/step-failure.ts';
import { move } from '../../turn/transitions.ts';
import type { Turn } from '../../turn/turn.ts';
import { bmcAccess, expectedIdentity } from './power.ts';
import { type OperationStep, operationTimeout } from './step-definition.ts';

/** The first inventory of a run; in a clean it also fixes which devices are erased. */
export const inspect: OperationStep = {
  kind: 'operation',
  inBand: true,
  timeoutMs: operationTimeout,
  operation: (turn, run) => ({
    case: 'inspect',
    value: create(agent.InspectSchema, {
      bootOperationId: bootOperationId(turn, run),
      ...bmcOfDrives(turn),
      bootMedia: turn.spec.cleaning?.bootMedia ?? [],
    }),
  }),
  leftMs: ({ spec, context }) => inspectTimeoutMs(spec.cleaning, operationTimeout(context.timing)),
  complete: (turn, run, _step, result) => {
    const inventory = result.observations?.inventory;
    if (inventory === undefined) return invalidResult('the inspection brought no inventory');
    const tooLarge = keepInventory(turn, inventory);
    if (tooLarge !== undefined) return tooLarge;
    const uncertified = leaveIfUncertified(turn, inventory);
    const refused = planDevices(turn, run, inventory);
    // Nobody gets a host with a disk that was not erased, whenever that was plugged in.
    return refused ?? (run.kind === RunKind.PROVISION ? uncertified : undefined);
  },
};

/** The BMC is asked for its drives where its protocol has a list of them. */
function bmcOfDrives(turn: Turn) {
  if (!protocolOf(turn.spec.bmc?.protocol).listsDrives) return {};
  return { bmc: bmcAccess(turn), ...expectedIdentity(turn) };
}

/** Largest inventory that is kept, in bytes on the wire: facts are one bounded record. */
const inventoryBytesMax = 128 * 1024;

function keepInventory(turn: Turn, inventory: Inventory): RunFailure | undefined {
  const { length } = toBinary(InventorySchema, inventory);
  if (length > inventoryBytesMax) {
    return invalidResult(
      `the inventory has ${length} bytes; at most ${inventoryBytesMax} are kept`,
    );
  }
  noteElsewhere(turn, inventory);
  const { inventory: before } = turn.context.facts;
  const whole = withEarlierNeighbors(before, inventory, inventoryBytesMax);
  settleHardware(turn, whole);
  turn.effects.push({ kind: 'facts', facts: { inventory: whole } });
  return undefined;
}

/**
 * A disk that nobody erased has come into an available host: it is available no more, and this is
 * why. So it is for a disk that was certified and was away: nobody saw what was done to it there.
 */
function leaveIfUncertified(turn: Turn, inventory: Inventory): RunFailure | undefined {
  if (turn.status.state !== HostState.AVAILABLE) return undefined;
  forgetAbsent(turn, inventory);
  const uncertified = uncertifiedDevice(turn, inventory);
  if (uncertified !== undefined) move(turn.status, 'used');
  return uncertified;
}

/** The inventory after the last erase: every device must be certified for this epoch (H6). */
export const inspectAgain: OperationStep = {
  ...inspect,
  complete: (turn, run, _step, result) => {
    const inventory = result.observations?.inventory;
    if (inventory === undefined) return invalidResult('the inspection brought no inventory');
    return keepInventory(turn, inventory) ?? checkCertified(turn, run, inventory);
  },
};
