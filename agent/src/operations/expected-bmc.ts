/**
 * Proves that a BMC is the one of the operation, by its present identity: another BMC never gets a
 * command.
 */
import { create } from '@bufbuild/protobuf';
import type { BmcDriver } from '@rackwright/bmc';
import { agent, type BmcIdentity } from '@rackwright/messages';
import type { FailedAttempt, FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { type BmcDrivers, failure, identityToWire, openBmc, resultOfBmc } from './bmc-access.ts';
import { bmcIdentityDifference } from './bmc-identity.ts';

export interface ExpectedBmc {
  readonly kind: 'expected';
  readonly driver: BmcDriver;
  /** Its present identity. */
  readonly bmcIdentity: Omit<BmcIdentity, '$typeName'>;
}

/**
 * Reads its identity live. Returns the end of the attempt when the BMC is another one, or reports
 * no identity.
 */
export async function openExpectedBmc(
  drivers: BmcDrivers,
  request: ExpectingBmc,
  context: OperationContext,
): Promise<ExpectedBmc | FinalResult> {
  const driver = await openBmc(drivers, request.bmc, context, request.expectedIdentity);
  return expectBmc(driver, request, context);
}

export type ExpectingBmc = Pick<agent.SetPower, 'bmc' | 'expectedIdentity'>;

/** The same of a BMC that was opened before: its address may lead elsewhere by now. */
export async function expectBmc<Driver extends Pick<BmcDriver, 'readIdentity'>>(
  driver: Driver,
  expecting: ExpectingBmc,
  { signal }: Pick<OperationContext, 'signal'>,
): Promise<
  (Pick<ExpectedBmc, 'kind' | 'bmcIdentity'> & { readonly driver: Driver }) | FinalResult
> {
  const identity = await driver.readIdentity(signal);
  if (identity.kind !== 'ok') return resultOfBmc(identity);
  const bmcIdentity = identityToWire(identity.value);
  return identityMismatchOf(expecting, bmcIdentity) ?? { kind: 'expected', driver, bmcIdentity };
}

/** The end of the attempt when this identity is of another BMC. */
export function identityMismatchOf(
  { bmc, expectedIdentity }: ExpectingBmc,
  bmcIdentity: ExpectedBmc['bmcIdentity'],
): FailedAttempt | undefined {
  const difference = bmcIdentityDifference(expectedIdentity, bmcIdentity);
  if (difference === undefined) return undefined;
  const message = `another BMC answers at ${bmc?.address}: ${difference}`;
  const observations = create(agent.ObservationsSchema, { bmcIdentity });
  return { ...failure('identityMismatch', message), observations };
}
