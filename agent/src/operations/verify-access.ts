import { create } from '@bufbuild/protobuf';
import { agent, byHand } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { type BmcDrivers, identityToWire, openBmc, resultOfBmc } from './bmc-access.ts';
import type { DriveLists } from './drive-lists.ts';

/** Proves address, credential and identity of a BMC by reading; changes nothing. */
export async function verifyAccess(
  drivers: BmcDrivers,
  driveLists: DriveLists,
  request: agent.VerifyAccess,
  context: OperationContext,
): Promise<FinalResult> {
  // There is no BMC to ask: a person switches the host.
  if (request.bmc?.protocol === byHand) return { kind: 'complete' };
  const driver = await openBmc(drivers, request.bmc, context);
  const identity = await driver.readIdentity(context.signal);
  if (identity.kind !== 'ok') return resultOfBmc(identity);
  const power = await driver.powerState(context.signal);
  if (power.kind !== 'ok') return resultOfBmc(power);
  const bmcDrives = await driveLists.readDrives(driver, context);
  const observations = create(agent.ObservationsSchema, {
    bmcIdentity: identityToWire(identity.value),
    poweredOn: power.value === 'on',
    ...(bmcDrives === undefined ? {} : { bmcDrives }),
  });
  return { kind: 'complete', observations };
}
