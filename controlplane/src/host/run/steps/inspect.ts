/** Steps that inspect the host from the runner, and what is stored of their results. */

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
import type { Pass, PassView } from '../../pass/pass.ts';
import type { RunView } from '../../pass/read-only.ts';
import { invalidResult } from '../../pass/step-failure.ts';
import { move } from '../../pass/transitions.ts';
import { bmcAccess, expectedIdentity } from './power.ts';
import { type OperationStep, operationTimeout } from './step-definition.ts';

/** The first inventory of a run; in a clean it also determines which devices are erased. */
export const inspect: OperationStep = {
  kind: 'operation',
  inBand: true,
  timeoutMs: operationTimeout,
  operation: (pass, run) => ({
    case: 'inspect',
    value: create(agent.InspectSchema, {
      bootOperationId: bootOperationId(pass, run),
      ...bmcOfDrives(pass),
      bootMedia: pass.spec.cleaning?.bootMedia ?? [],
    }),
  }),
  leftMs: ({ spec, snapshot }) =>
    inspectTimeoutMs(spec.cleaning, operationTimeout(snapshot.timing)),
  complete: (pass, run, _step, result) => {
    const inventory = result.observations?.inventory;
    if (inventory === undefined) return invalidResult('the inspection brought no inventory');
    const tooLarge = keepInventory(pass, inventory);
    if (tooLarge !== undefined) return tooLarge;
    const uncertified = leaveIfUncertified(pass, run, inventory);
    const refused = planDevices(pass, run, inventory);
    // No user gets a host with a disk that was not erased, whenever that was plugged in.
    return refused ?? (run.kind === RunKind.PROVISION ? uncertified : undefined);
  },
};

/** The BMC is asked for its drives where its protocol has a list of them. */
function bmcOfDrives(pass: PassView) {
  if (!protocolOf(pass.spec.bmc?.protocol).listsDrives) return {};
  return { bmc: bmcAccess(pass), ...expectedIdentity(pass) };
}

/** The largest stored inventory, in bytes on the wire: facts are one bounded record. */
const inventoryBytesMax = 128 * 1024;

function keepInventory(pass: Pass, inventory: Inventory): RunFailure | undefined {
  const { length } = toBinary(InventorySchema, inventory);
  if (length > inventoryBytesMax) {
    return invalidResult(
      `the inventory has ${length} bytes; at most ${inventoryBytesMax} are kept`,
    );
  }
  noteElsewhere(pass, inventory);
  const { inventory: before } = pass.snapshot.facts;
  const whole = withEarlierNeighbors(before, inventory, inventoryBytesMax);
  settleHardware(pass, whole);
  pass.effects.push({ kind: 'facts', facts: { inventory: whole } });
  return undefined;
}

/**
 * An available host has a disk that was not erased: it is no longer available, and this is the
 * reason. The same applies to a certified disk that was absent: what happened to it there is
 * unknown. A host may also have left `available` since its provision began: by a use of its disks,
 * or as its image was to be written, which ends no certificate.
 */
function leaveIfUncertified(
  pass: Pass,
  { kind }: RunView,
  inventory: Inventory,
): RunFailure | undefined {
  const isAvailable = pass.status.state === HostState.AVAILABLE;
  if (!isAvailable && kind !== RunKind.PROVISION) return undefined;
  forgetAbsent(pass, inventory);
  const uncertified = uncertifiedDevice(pass, inventory);
  if (uncertified !== undefined && isAvailable) move(pass.status, 'used');
  return uncertified;
}

/** The inventory after the last erase: every device must be certified for this epoch (H6). */
export const inspectAgain: OperationStep = {
  ...inspect,
  complete: (pass, run, _step, result) => {
    const inventory = result.observations?.inventory;
    if (inventory === undefined) return invalidResult('the inspection brought no inventory');
    return keepInventory(pass, inventory) ?? checkCertified(pass, run, inventory);
  },
};
