/**
 * Checks where a BMC's password is sent, as a host's spec says: a person who sets this could have
 * the password sent to a machine of their own.
 *
 * Invariants:
 * 1. A spec that sends a credential outside the networks or racks that the credential names is
 *    refused for every caller. Two concurrent writes may both pass; the check is repeated when the
 *    secret is sent (`secrets/bounds.ts`).
 * 2. For a credential that names no networks, only an administrator sets the BMC: the address,
 *    port, protocol and pinned certificate of a host with it are changed by an administrator only.
 * 3. A BMC has no internal address of the agent's machine or its link, unless the fleet lists the
 *    address: the agent would connect there. Only the agent sees what a name resolves to, and
 *    checks that.
 * 4. Present values have been checked before: a change of other fields does not check them again.
 */
import { equals } from '@bufbuild/protobuf';
import {
  ApiFailure,
  type BmcEndpoint,
  BmcEndpointSchema,
  type Credential,
  type RackName,
  Role,
  store as wire,
} from '@rackwright/messages';
import { internalAddress, mayBeReached } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { type Principal, roleTooSmall } from '../../access/index.ts';
import { parseName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import type { Violations } from '../../call/violations.ts';
import { idOf, readRecord } from '../../records/index.ts';
import { liesWithin } from '../../secrets/index.ts';
import { bmcPort, endpointText, readFleet } from '../index.ts';

/** The fields that decide where a credential is sent. */
export interface Destination {
  readonly rack: RackName;
  /** In a line of the manifest its address may be empty: then the machine reports it. */
  readonly bmc?: BmcEndpoint | undefined;
  /** The BMC address by which a line of the manifest recognizes its machine. */
  readonly matched?: string;
}

/** Why the credential may not be sent there; undefined when it may (invariant 1). */
export function destinationProblem(
  { name, bmcNetworks, racks }: Pick<Credential, 'name' | 'bmcNetworks' | 'racks'>,
  { rack, bmc }: Destination,
): { readonly field: 'rack' | 'bmc.address'; readonly problem: string } | undefined {
  if (racks.length > 0 && rack !== '' && !racks.includes(rack)) {
    const problem = `is ${rack}, but ${name} is for hosts of ${racks.join(', ')} alone`;
    return { field: 'rack', problem };
  }
  const address = bmc?.address ?? '';
  if (bmcNetworks.length === 0 || address === '' || liesWithin(address, bmcNetworks)) {
    return undefined;
  }
  const problem =
    `is ${address}, but ${name} goes to BMCs in ${bmcNetworks.join(', ')} alone; give an address ` +
    'there, or another credential';
  return { field: 'bmc.address', problem };
}

/** Adds the violations of invariants 1 and 3 in `after`, at fields below `path`. */
export async function checkDestination(
  { store }: Pick<RpcDependencies, 'store'>,
  path: string,
  before: Destination | undefined,
  after: Destination,
  violations: Violations,
): Promise<void> {
  const isMoved = !isSameBmc(before, after);
  if (isMoved) violations.addIf(`${path}.bmc.address`, await internalProblem(store, after));
  const credential = await credentialOf(store, after);
  const found = credential && destinationProblem(credential, after);
  if (found !== undefined) violations.add(`${path}.${found.field}`, found.problem);
}

function isSameBmc(before: Destination | undefined, { bmc }: Destination): boolean {
  if (bmc === undefined) return true;
  return before?.bmc !== undefined && endpointText(before.bmc) === endpointText(bmc);
}

/** Invariant 3. */
async function internalProblem(
  store: RpcDependencies['store'],
  { bmc }: Destination,
): Promise<string | undefined> {
  if (bmc === undefined) return undefined;
  const { address } = bmc;
  if (/(^|\.)localhost$/.test(address)) {
    return `is ${address}, which names the agent’s own machine; give the address of the BMC`;
  }
  const kind = internalAddress(address);
  if (kind === undefined) return undefined;
  const listed = (await readFleet(store))?.fleet?.spec?.internalAddresses ?? [];
  if (mayBeReached(address, bmcPort(bmc), listed)) return undefined;
  return (
    `is ${address}, ${kind}; an administrator may list it: ` +
    `rackwright fleet update --internal-address ${address}`
  );
}

/** Throws `permissionDenied` where only an administrator may set this (invariants 2, 4). */
export async function checkMayPoint(
  deps: Pick<RpcDependencies, 'store'> & { readonly principal: Principal },
  path: string,
  before: Destination | undefined,
  after: Destination,
): Promise<void> {
  const { store, principal } = deps;
  if (principal.role >= Role.ADMIN || isSame(before, after)) return;
  const credential = await credentialOf(store, after);
  if (credential === undefined || credential.bmcNetworks.length > 0) return;
  const { name } = credential;
  const refused = roleTooSmall(principal, `To say to which BMC ${name} goes`, Role.ADMIN).error;
  const id = idOf(name);
  throw new ApiFailure({
    ...refused,
    message:
      `${path}.bmc: ${refused.message} Or have an administrator name the networks of its BMCs, ` +
      `within which operators may: rackwright credential update ${id} --keep-password ` +
      '--bmc-network NETWORK.',
  });
}

function isSame(before: Destination | undefined, after: Destination): boolean {
  const { rack, bmc, matched = '' } = after;
  if (bmc === undefined) return true;
  if (before?.bmc === undefined) return false;
  const isMoved = before.rack !== rack || (before.matched ?? '') !== matched;
  return !isMoved && equals(BmcEndpointSchema, before.bmc, bmc);
}

async function credentialOf(
  store: RpcDependencies['store'],
  { bmc }: Destination,
): Promise<Credential | undefined> {
  const id = parseName('credentials', bmc?.credential ?? '');
  if (id === undefined) return undefined;
  const key = storeKey('credentials', id);
  return (await readRecord(store, wire.CredentialRecordSchema, key))?.record.credential;
}
