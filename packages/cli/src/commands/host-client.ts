/** What every command on hosts starts with. */
import { createClient, type Host, HostSchema, HostService } from '@rackwright/api';
import { connectionFlags, idArgument, outputFlag, type SharedFlags } from '../flags.ts';
import { hostFields } from '../output/host.ts';
import { printFields, printJson } from '../output/show.ts';
import { type Connection, openConnection } from '../settings.ts';
import type { World } from '../world.ts';
import { withClient } from './calls.ts';

export const hostFlags = { ...connectionFlags, ...outputFlag };
export const hostAliases = { o: 'output' } as const;
export const hostArgument = idArgument('host', 'Id of the host');

export const reasonFlag = {
  reason: { kind: 'parsed', parse: String, default: '', brief: 'Why, one line' },
} as const;

export { requestFlag } from '../flags.ts';

export type HostClient = ReturnType<typeof hostClient>;

/** Runs `work` with a client of HostService. */
export function withHosts<T>(
  world: World,
  flags: SharedFlags,
  work: (hosts: HostClient) => Promise<T>,
): Promise<T> {
  return withClient(openConnection(world, flags), hostClient, work);
}

/** Prints one host. */
export function showHost(world: World, { output }: SharedFlags, host: Host): void {
  if (output === 'json') printJson(world, HostSchema, host);
  else printFields(world, hostFields(host, world.clock));
}

function hostClient({ channel, defaults }: Connection) {
  return createClient(HostService, channel, defaults);
}
