/** Room in the list of a rack's discovered machines, and names there. Pure. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { counted, type RackName } from '@rackwright/messages';
import { judge } from './judge.ts';
import type { KeptMachine } from './kept.ts';
import type { DiscoverySnapshot } from './snapshot.ts';
import { identitiesOf, identityInRack } from './traits.ts';

const machinesMaxDefault = 256;

/** Machines that a rack lists at most. */
export function machinesMaxOf(
  policy: { readonly machinesMax?: number | undefined } | undefined,
): number {
  return policy?.machinesMax ?? machinesMaxDefault;
}

/** Why a machine is not listed where all places are wanted. */
export function noRoomText(rack: RackName, listed: number, most: number): string {
  return `${rack} lists ${counted(listed, 'machine')} already, of ${most}: accept some`;
}

/** What leaves a full list first; a machine that is taken at once may drive out whatever waits. */
export function leastWanted(
  rack: RackName,
  world: DiscoverySnapshot,
  any: boolean,
): KeptMachine | undefined {
  const listed = world.machines
    .filter(({ machine }) => machine.rack === rack)
    .sort((one, other) => seenMs(one) - seenMs(other));
  const unwanted = listed.find((each) => {
    const decision = judge(each, world);
    return decision.kind === 'wait' && !decision.fits;
  });
  return unwanted ?? (any ? listed[0] : undefined);
}

function seenMs({ machine: { lastSeenTime } }: KeptMachine): number {
  return lastSeenTime === undefined ? 0 : timestampMs(lastSeenTime);
}

/** By what the machine is named; undefined: all that names it names others of its rack already. */
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
