/**
 * Asserts a power state, with a boot override when switching on. How a running system is asked to
 * stop before its power is taken stands in `shut-down.ts`.
 *
 * 1. Identity is read live first; a BMC that is not the expected one is never told anything.
 * 2. An override is read back before power is switched on.
 * 3. The boot grant is durable before power is switched on, and closed again when this fails, and
 *    whenever the host is powered for anything but the runner. A grant for rescue says that its
 *    runner takes no step.
 * 4. Of a host that a person switches nothing is observed, and nothing said: its grant is opened or
 *    closed as it would be, and that is all.
 * 5. A host that is on cannot be made to boot from elsewhere: that is a conflict, not a success
 *    (off and on are two operations of the engine).
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { BmcDriver, BootDevice, Firmware } from '@rackwright/bmc';
import { agent, byHand } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { type BmcDrivers, failure, resultOfBmc } from './bmc-access.ts';
import { expectBmc, openExpectedBmc } from './expected-bmc.ts';
import { shutDown, shutdownLeftMs } from './shut-down.ts';

/** When to ask again for a host that has to be switched off first. */
const alreadyOnRetryMs = 10_000;

/** Whose flag the boot override of a host carries; a problem: it boots nothing, and why. */
export type BootFirmware = (
  hostUid: string,
) => { readonly firmware: Firmware } | { readonly problem: string };

export async function setPower(
  drivers: BmcDrivers & { readonly bootFirmware?: BootFirmware | undefined },
  clock: Clock,
  operation: agent.Operation,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult> {
  if (request.on === undefined) return failure('invalidArgument', 'SetPower says no state');
  if (request.bmc?.protocol === byHand) return letPerson(drivers, request, context);
  const bmc = await openExpectedBmc(drivers, request, context);
  if ('kind' in bmc) return bmc;
  const { driver, bmcIdentity } = bmc;
  const { on } = request;
  if (on) {
    const by = drivers.bootFirmware?.(operation.hostUid) ?? { firmware: drivers.firmware };
    const end = await switchOn(driver, by, request, context);
    if (end !== undefined) return end;
    await wake(drivers, request);
    return complete({ bmcIdentity, poweredOn: on });
  }
  await context.begin();
  await context.closeGrants();
  const leftMs = shutdownLeftMs(operation, context);
  if (leftMs === undefined) {
    const off = await driver.setPower('off', context.signal);
    return off.kind === 'ok' ? complete({ bmcIdentity, poweredOn: on }) : resultOfBmc(off);
  }
  const prove = async () => {
    const still = await expectBmc(driver, request, context);
    return 'kind' in still ? still : undefined;
  };
  const down = await shutDown({ driver, clock, context, prove }, leftMs);
  if (down.kind !== 'off') return down;
  return complete({ bmcIdentity, poweredOn: on, shutdown: down.shutdown });
}

/** Rule 4. */
async function letPerson(
  drivers: BmcDrivers,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult> {
  await context.begin();
  if (request.on === true) {
    await prepareGrant(request, context);
    await wake(drivers, request);
  } else await context.closeGrants();
  return { kind: 'complete' };
}

/** Nothing comes back: what boots then shows it. */
async function wake({ wake: send }: BmcDrivers, { bmc }: agent.SetPower): Promise<void> {
  const { wakeMacs = [] } = bmc ?? {};
  if (wakeMacs.length > 0) await send?.(wakeMacs);
}

function complete(
  observed: Exclude<MessageInitShape<typeof agent.ObservationsSchema>, agent.Observations>,
): FinalResult {
  return { kind: 'complete', observations: create(agent.ObservationsSchema, observed) };
}

/** Undefined when it is on. */
async function switchOn(
  driver: BmcDriver,
  by: ReturnType<BootFirmware>,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult | undefined> {
  const device = bootDevice(request.bootFrom);
  if (device === 'unsupported') {
    return failure('unsupported', `boot target ${request.bootFrom} is unknown to this agent`);
  }
  if (device === undefined) {
    await context.begin();
    const on = await driver.setPower('on', context.signal);
    return on.kind === 'ok' ? undefined : resultOfBmc(on);
  }
  if ('problem' in by) return failure('invalidArgument', by.problem);
  const before = await driver.powerState(context.signal);
  if (before.kind !== 'ok') return resultOfBmc(before);
  if (before.value === 'on') {
    const message = 'the host is on; to boot it from elsewhere it has to be powered off first';
    return { kind: 'retryAfter', reason: 'invalidState', message, delayMs: alreadyOnRetryMs };
  }
  await context.begin();
  await prepareGrant(request, context);
  const override = { device, firmware: by.firmware };
  // Without one the machine boots by its own order, and the snapshot decides what that brings.
  const set = await driver.setBootOverride?.(override, context.signal);
  const on =
    set === undefined || set.kind === 'ok' ? await driver.setPower('on', context.signal) : set;
  if (on.kind === 'ok') return undefined;
  await context.closeGrants();
  return resultOfBmc(on);
}

async function prepareGrant(request: agent.SetPower, context: OperationContext): Promise<void> {
  const rescue = request.bootFrom === agent.BootTarget.RESCUE;
  if (!rescue && request.bootFrom !== agent.BootTarget.RUNNER) {
    await context.closeGrants();
    return;
  }
  const { bootMacs: macs, grantExpireTime } = request;
  const expiresAtMs = grantExpireTime === undefined ? 0 : timestampMs(grantExpireTime);
  await context.openGrant({ macs, expiresAtMs, rescue });
}

/** Undefined: no override was asked for. */
function bootDevice(target: agent.BootTarget): BootDevice | 'unsupported' | undefined {
  switch (target) {
    case agent.BootTarget.UNSPECIFIED:
      return undefined;
    case agent.BootTarget.DISK:
      return 'disk';
    case agent.BootTarget.RUNNER:
    case agent.BootTarget.RESCUE:
    case agent.BootTarget.IMAGE:
      return 'network';
    default:
      return 'unsupported';
  }
}
