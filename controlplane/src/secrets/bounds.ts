/**
 * Where a credential may be sent, by its own record: to which BMCs, and for hosts of which racks.
 * Checked again each time it is sent, because credential and host are two records that change
 * independently.
 */
import type { Credential, RackName } from '@rackwright/messages';
import { idOf } from '../records/index.ts';
import { liesWithin } from './networks.ts';

/** The destination. */
export interface GivenFor {
  /** "racks/RACK", the one of the host that it is for. */
  readonly rack: RackName;
  /** Address of the BMC. Unset: it is sent to a step, a registry or a webhook. */
  readonly bmcAddress?: string;
}

/** The credential's own record forbids the destination; the message is for people. */
export class OutOfBounds extends Error {}

/** Why it may not be sent there, and a remedy; undefined: it may. */
export function boundsProblem(
  { name, bmcNetworks, racks }: Pick<Credential, 'name' | 'bmcNetworks' | 'racks'>,
  { rack, bmcAddress }: GivenFor,
): string | undefined {
  const id = idOf(name);
  if (racks.length > 0 && !racks.includes(rack)) {
    const all = [...racks, rack].map((each) => idOf(each)).join(' --rack ');
    return (
      `${name} is for hosts of ${racks.join(', ')} alone, and this is one of ${rack}; use ` +
      `another credential, or name the rack as well: rackwright credential update ` +
      `${id} --keep-password --rack ${all}`
    );
  }
  if (bmcNetworks.length === 0) return undefined;
  const networks = bmcNetworks.join(', ');
  if (bmcAddress === undefined) {
    return `${name} goes to BMCs in ${networks} alone, and not to a step, registry or webhook`;
  }
  if (liesWithin(bmcAddress, bmcNetworks)) return undefined;
  const all = [...bmcNetworks, 'NETWORK'].join(' --bmc-network ');
  return (
    `${name} goes to BMCs in ${networks} alone, and ${bmcAddress} is not there; give the host ` +
    `another credential, or name its network as well: rackwright credential update ${id} ` +
    `--keep-password --bmc-network ${all}`
  );
}
