/** The shared parts of every command on the fleet. */
import { FleetService } from '@rackwright/messages';
import type { Client } from '@rackwright/rpc';
import { callsOf } from '../frame/calls.ts';

export type FleetClient = Client<typeof FleetService>;

/** Runs `work` with a client of FleetService. */
export const withFleet = callsOf(FleetService);
