/**
 * Where a credential may go, by what it says itself: to which BMCs, and for hosts of which racks.
 * Judged again each time that it goes out, for it and the host are two records, which change apart.
 */
import type { Credential, RackName } from '@rackwright/messages';
import { idOf } from '../records/index.ts';
import { liesWithin } from './networks.ts';

/** Where one goes. */
export interface GivenFor {
  /** "racks/RACK", the one of the host that it is for. */
  readonly rack: RackName;
  /** Address of the BMC. Unset: it goes to a step, a registry or a webhook. */
  readonly bmcAddress?: string;
}

/** It says of itself that it may not go there; the message is for people. */
export class OutOfBounds extends Error {}

/** What keeps it from there, and what to do; undefined: nothing. */
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
