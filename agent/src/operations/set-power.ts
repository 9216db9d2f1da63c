/**
 * Asserts a power state, with a boot override when switching on. `shut-down.ts` says how a running
 * system is asked to stop before its power is cut.
 *
 * 1. Identity is read live first; a BMC that is not the expected one never gets a command.
 * 2. An override is read back before power is switched on.
 * 3. The boot grant is durable before power is switched on. It is closed again when this fails, and
 *    whenever the host is powered for anything but the runner. A grant for rescue says that its
 *    runner takes no step.
 * 4. For a host that a person switches nothing is observed and nothing is sent: its grant is opened
 *    or closed as usual, and that is all.
 * 5. A host that is on cannot be made to boot from elsewhere: that is a conflict, not a success
 *    (off and on are two operations of the engine).
 * 6. The medium for a boot from virtual media is inserted for that boot. It is seen in the drive
 *    right before power is switched on. Every other order ejects it, with each boot method. The
 *    medium holds no secret and starts nothing without a grant: a drive that is not emptied fails
 *    nothing but the next insertion.
 * 7. Only a medium of this agent is ejected; another medium stays until an insertion replaces it.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type BmcDriver,
  type BmcResult,
  type BootDevice,
  type BootOverride,
  type Firmware,
  failed,
} from '@rackwright/bmc';
import { agent, BootMethod, byHand, type HostUid } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import { isOwnMedium } from '../boot/index.ts';
import type { OperationContext } from '../session/index.ts';
import { type BmcDrivers, failure, resultOfBmc } from './bmc-access.ts';
import { expectBmc, openExpectedBmc } from './expected-bmc.ts';
import { shutDown, shutdownLeftMs } from './shut-down.ts';

/** When to ask again for a host that has to be switched off first. */
const alreadyOnRetryMs = 10_000;

/**
 * The firmware type whose flag a host's boot override carries; a problem: it boots nothing, and
 * why.
 */
export type BootFirmware = (
  hostUid: HostUid,
) => { readonly firmware: Firmware } | { readonly problem: string };

/** The URL at which BMCs fetch the boot medium; undefined: none is served here. */
export type BootMediumUrl = () => string | undefined;

export async function setPower(
  drivers: BmcDrivers & {
    readonly bootFirmware?: BootFirmware | undefined;
    readonly bootMediumUrl?: BootMediumUrl | undefined;
  },
  clock: Clock,
  operation: agent.Operation,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult> {
  if (request.on === undefined) return failure('invalidArgument', 'SetPower says no state');
  if (request.bmc?.protocol === byHand) return switchByHand(drivers, request, context);
  const bmc = await openExpectedBmc(drivers, request, context);
  if (bmc.kind !== 'expected') return bmc;
  const { driver, bmcIdentity } = bmc;
  const { on } = request;
  const mediumUrl = drivers.bootMediumUrl?.();
  if (on) {
    const by = drivers.bootFirmware?.(operation.hostUid) ?? { firmware: drivers.firmware };
    const end = await switchOn({ driver, by, mediumUrl }, request, context);
    if (end !== undefined) return end;
    await wake(drivers, request);
    return complete({ bmcIdentity, poweredOn: on });
  }
  await context.begin();
  await context.closeGrants();
  const leftMs = shutdownLeftMs(operation, context);
  if (leftMs === undefined) {
    const off = await driver.setPower('off', context.signal);
    if (off.kind !== 'ok') return resultOfBmc(off);
    await emptyDrive(driver, mediumUrl, context);
    return complete({ bmcIdentity, poweredOn: on });
  }
  const prove = async () => {
    const still = await expectBmc(driver, request, context);
    return still.kind === 'expected' ? undefined : still;
  };
  const down = await shutDown({ driver, clock, context, prove }, leftMs);
  if (down.kind !== 'off') return down;
  await emptyDrive(driver, mediumUrl, context);
  return complete({ bmcIdentity, poweredOn: on, shutdown: down.shutdown });
}

/** Rule 4. */
async function switchByHand(
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

/** There is no answer: the boot that follows shows the effect. */
async function wake({ wake: send }: BmcDrivers, { bmc }: agent.SetPower): Promise<void> {
  const { wakeMacs = [] } = bmc ?? {};
  if (wakeMacs.length > 0) await send?.(wakeMacs);
}

function complete(
  observed: Exclude<MessageInitShape<typeof agent.ObservationsSchema>, agent.Observations>,
): FinalResult {
  return { kind: 'complete', observations: create(agent.ObservationsSchema, observed) };
}

/** The failure; undefined if the host is on. */
async function switchOn(
  starter: Starter,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult | undefined> {
  const device = bootDevice(request);
  if (device === 'unsupported') {
    return failure('unsupported', `boot target ${request.bootFrom} is unknown to this agent`);
  }
  if (device === undefined) return await switchOnAlone(starter, context);
  return await bootFrom(device, starter, request, context);
}

/** It boots by its own order. */
async function switchOnAlone(
  { driver, mediumUrl }: Starter,
  context: OperationContext,
): Promise<FinalResult | undefined> {
  await context.begin();
  await emptyDrive(driver, mediumUrl, context);
  const on = await driver.setPower('on', context.signal);
  return on.kind === 'ok' ? undefined : resultOfBmc(on);
}

async function bootFrom(
  device: BootDevice,
  { driver, by, mediumUrl }: Starter,
  request: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult | undefined> {
  if ('problem' in by) return failure('invalidBootSettings', by.problem);
  const unfit = device === 'cd' ? unfitForMedia(driver, by.firmware, mediumUrl) : undefined;
  if (unfit !== undefined) return unfit;
  const before = await driver.powerState(context.signal);
  if (before.kind !== 'ok') return resultOfBmc(before);
  if (before.value === 'on') {
    const message = 'the host is on; to boot it from elsewhere it has to be powered off first';
    return { kind: 'retryAfter', reason: 'invalidState', message, delayMs: alreadyOnRetryMs };
  }
  await context.begin();
  await prepareGrant(request, context);
  const url = device === 'cd' ? mediumUrl : undefined;
  if (url === undefined) await emptyDrive(driver, mediumUrl, context);
  const override = { device, firmware: by.firmware };
  const refused = await orderBoot(driver, override, url, context.signal);
  if (refused === undefined) return undefined;
  await context.closeGrants();
  if (url !== undefined) await emptyDrive(driver, mediumUrl, context);
  return resultOfBmc(refused);
}

/** The orders of a boot from elsewhere; the first that is refused is the last. */
async function orderBoot(
  driver: BmcDriver,
  override: BootOverride,
  url: string | undefined,
  signal: AbortSignal,
): Promise<RefusedResult | undefined> {
  const notInserted = await insertMedium(driver, url, signal);
  if (notInserted !== undefined) return notInserted;
  // Without an override the machine boots by its own order, and the snapshot decides the result.
  const notOverridden = refusedIn(await driver.setBootOverride?.(override, signal));
  if (notOverridden !== undefined) return notOverridden;
  const lost = await mediumLost(driver, url, signal);
  if (lost !== undefined) return lost;
  return refusedIn(await driver.setPower('on', signal));
}

interface Starter {
  readonly driver: BmcDriver;
  readonly by: ReturnType<BootFirmware>;
  readonly mediumUrl: string | undefined;
}

/** Why the host cannot boot from virtual media; undefined: it can. */
function unfitForMedia(
  driver: BmcDriver,
  firmware: Firmware,
  mediumUrl: string | undefined,
): FinalResult | undefined {
  const instead = 'or boot the host over the network (boot.method)';
  if (driver.insertMedia === undefined) {
    return failure('unsupported', `the protocol of its BMC has no virtual media: ${instead}`);
  }
  if (mediumUrl === undefined) {
    const right = 'name loaders in virtualMedia of its configuration';
    return failure('mediaMissing', `this agent serves no boot medium: ${right}, ${instead}`);
  }
  if (firmware === 'uefi') return undefined;
  const right = 'set bmc.firmware of the agent or the firmware of its boot profile to uefi';
  return failure(
    'invalidBootSettings',
    `virtual media boot by UEFI, not BIOS: ${right}, ${instead}`,
  );
}

type RefusedResult = Exclude<BmcResult<never>, { kind: 'ok' }>;

function refusedIn(result: BmcResult<unknown> | undefined): RefusedResult | undefined {
  return result === undefined || result.kind === 'ok' ? undefined : result;
}

/** The failure; undefined if the medium is in the drive, or none is wanted. */
async function insertMedium(
  driver: BmcDriver,
  url: string | undefined,
  signal: AbortSignal,
): Promise<RefusedResult | undefined> {
  if (url === undefined) return undefined;
  return refusedIn(await driver.insertMedia?.(url, signal));
}

/** The failure; undefined if the medium is still in the drive, or none is wanted. */
async function mediumLost(
  driver: BmcDriver,
  url: string | undefined,
  signal: AbortSignal,
): Promise<RefusedResult | undefined> {
  if (url === undefined) return undefined;
  const seen = await driver.readMedia?.(signal);
  if (seen === undefined || seen.kind !== 'ok') return seen;
  if (seen.value === url) return undefined;
  const message = 'the virtual drive has lost the medium before the host was switched on';
  return failed('mediaMissing', message, `it holds ${seen.value ?? 'nothing'}`);
}

/** Rules 6 and 7. An agent that serves no medium asks for none. */
async function emptyDrive(
  driver: BmcDriver,
  mediumUrl: string | undefined,
  { signal }: OperationContext,
): Promise<void> {
  if (mediumUrl === undefined) return;
  const seen = await driver.readMedia?.(signal);
  if (seen?.kind !== 'ok' || seen.value === undefined) return;
  if (isOwnMedium(seen.value, mediumUrl)) await driver.ejectMedia?.(signal);
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

/** Undefined: the order has no override. */
function bootDevice({
  bootFrom,
  bootMethod,
}: agent.SetPower): BootDevice | 'unsupported' | undefined {
  switch (bootFrom) {
    case agent.BootTarget.UNSPECIFIED:
      return undefined;
    case agent.BootTarget.DISK:
      return 'disk';
    case agent.BootTarget.RUNNER:
    case agent.BootTarget.RESCUE:
      return bootMethod === BootMethod.VIRTUAL_MEDIA ? 'cd' : 'network';
    case agent.BootTarget.IMAGE:
      return 'network';
    default:
      return 'unsupported';
  }
}
