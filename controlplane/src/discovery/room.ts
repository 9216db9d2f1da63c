/** Room in the list of a rack's discovered machines, and names there. Pure. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { counted, type RackName } from '@rackwright/messages';
import { judge } from './judge.ts';
import type { KeptMachine } from './kept.ts';
import type { DiscoverySnapshot } from './snapshot.ts';
import { identitiesOf, identityInRack } from './traits.ts';

const machinesMaxDefault = 256;

/** The most machines that a rack lists. */
export function machinesMaxOf(
  policy: { readonly machinesMax?: number | undefined } | undefined,
): number {
  return policy?.machinesMax ?? machinesMaxDefault;
}

/** Why a machine is not listed when the list is full. */
export function noRoomText(rack: RackName, listed: number, most: number): string {
  return `${rack} lists ${counted(listed, 'machine')} already, of ${most}: accept some`;
}

/**
 * The machine to remove from a full list first; a machine that is accepted at once may replace any
 * waiting one.
 */
export function leastWanted(
  rack: RackName,
  snapshot: DiscoverySnapshot,
  any: boolean,
): KeptMachine | undefined {
  const listed = snapshot.machines
    .filter(({ machine }) => machine.rack === rack)
    .sort((one, other) => seenMs(one) - seenMs(other));
  const unwanted = listed.find((each) => {
    const decision = judge(each, snapshot);
    return decision.kind === 'wait' && !decision.fits;
  });
  return unwanted ?? (any ? listed[0] : undefined);
}

function seenMs({ machine: { lastSeenTime } }: KeptMachine): number {
  return lastSeenTime === undefined ? 0 : timestampMs(lastSeenTime);
}

/** The trait that names the machine; undefined: all its traits already name others of its rack. */
export function freeIdentity(
  { machine: { rack }, traits }: KeptMachine,
  { rackOf }: Pick<DiscoverySnapshot, 'rackOf'>,
) {
  const all = identitiesOf(traits);
  const free = all.find(({ id }) => rackOf(id) === undefined);
  if (free !== undefined || all.every(({ id }) => rackOf(id) === rack)) return free;
  const own = identityInRack(traits, rack);
  return own === undefined || rackOf(own.id) !== undefined ? undefined : own;
}
