/** What every command on the fleet starts with. */
import { createClient, FleetService } from '@rackwright/api';
import type { SharedFlags } from '../flags.ts';
import { type Connection, openConnection } from '../settings.ts';
import type { World } from '../world.ts';
import { withClient } from './calls.ts';

const client = ({ channel, defaults }: Connection) => createClient(FleetService, channel, defaults);

export type FleetClient = ReturnType<typeof client>;

/** Runs `work` with a client of FleetService. */
export function withFleet<T>(
  world: World,
  flags: SharedFlags,
  work: (fleet: FleetClient) => Promise<T>,
): Promise<T> {
  return withClient(openConnection(world, flags), client, work);
}
