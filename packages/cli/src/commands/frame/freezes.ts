/** Which racks nothing destructive begins in, as lists show it. */
import type { Fleet, Host, Rack } from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import type { SharedFlags } from '../../flags.ts';
import { withFleet } from '../fleet/client.ts';
import { withRacks } from '../rack/client.ts';
import { allPages } from './calls.ts';
import { freezeText } from './limits.ts';

/** The freezes that block all hosts of a rack: its own, or the fleet's. */
export interface Freezes {
  ofRack(rack: Pick<Rack, 'name' | 'status'>): string;
  ofHost(host: Host): string;
}

/** The freezes in force now: one reading of racks and fleet, however many hosts there are. */
export async function readFreezes(
  io: CommandIo,
  flags: SharedFlags,
  racks?: readonly Rack[],
): Promise<Freezes> {
  const fleet = await readFleet(io, flags);
  return freezesOf(fleet, racks ?? (await readRacks(io, flags)));
}

/** Everything that is frozen itself, and why: the fleet, then racks. */
export async function readFrozen(io: CommandIo, flags: SharedFlags): Promise<[string, string][]> {
  const all = [await readFleet(io, flags), ...(await readRacks(io, flags))];
  const frozen = all.filter(({ status }) => status?.freeze !== undefined);
  return frozen.map(({ name, status }) => [name, freezeText(status?.freeze)]);
}

function readFleet(io: CommandIo, flags: SharedFlags): Promise<Fleet> {
  return withFleet(io, flags, (client) => client.getFleet({}));
}

function readRacks(io: CommandIo, flags: SharedFlags): Promise<Rack[]> {
  return withRacks(io, flags, (client) =>
    allPages(
      (pageToken) => client.listRacks({ pageToken }),
      (page) => page.racks,
    ),
  );
}

/** Pure. */
export function freezesOf(fleet: Fleet, racks: readonly Rack[]): Freezes {
  const ofFleet = freezeText(fleet.status?.freeze, 'fleet ');
  const ofRack = ({ status }: Pick<Rack, 'status'>) =>
    [freezeText(status?.freeze, 'rack '), ofFleet].filter(Boolean).join('; ');
  const byRack = new Map(racks.map((rack) => [rack.name, ofRack(rack)]));
  return { ofRack, ofHost: ({ spec }) => byRack.get(spec?.rack ?? '') ?? ofFleet };
}
