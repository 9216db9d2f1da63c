/** What every command on hosts starts with. */
import { type Host, HostSchema, HostService } from '@rackwright/messages';
import type { Client } from '@rackwright/rpc';
import { buildCommand } from '@stricli/core';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  requestFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { hostFields } from '../../output/host.ts';
import { printFields, printJson } from '../../output/show.ts';
import type { CliContext, World } from '../../world.ts';
import { callsOf } from '../frame/calls.ts';

export const hostFlags = { ...connectionFlags, ...outputFlag };
export const hostAliases = { o: 'output' } as const;
export const hostArgument = idArgument('host', 'Id of the host');

export const reasonFlag = {
  reason: { kind: 'parsed', parse: String, default: '', brief: 'Why, one line' },
} as const;

export { requestFlag } from '../../flags.ts';

/** Flags of a command that takes a reason. */
export type ReasonFlags = SharedFlags & { readonly reason: string; readonly requestId: string };

export type HostClient = Client<typeof HostService>;

/** Runs `work` with a client of HostService. */
export const withHosts = callsOf(HostService);

/** Prints one host. */
export function showHost(world: World, { output }: SharedFlags, host: Host): void {
  if (output === 'json') printJson(world, HostSchema, host);
  else printFields(world, hostFields(host, world.clock));
}

/** What most requests for a host say. */
interface ReasonedCall {
  readonly name: string;
  readonly reason: string;
  readonly requestId: string;
}

/** A command that takes a host and a reason, and shows the host as it then is. */
export function reasonedCommand(
  docs: { readonly brief: string; readonly fullDescription?: string },
  ask: (hosts: HostClient, call: ReasonedCall) => Promise<Host>,
) {
  return buildCommand({
    docs,
    parameters: {
      flags: { ...hostFlags, ...reasonFlag, ...requestFlag },
      positional: hostArgument,
      aliases: hostAliases,
    },
    async func(this: CliContext, flags: ReasonFlags, id: string) {
      const { reason, requestId } = flags;
      const call = { name: resourceName('hosts', id), reason, requestId };
      const host = await withHosts(this.world, flags, (hosts) => ask(hosts, call));
      showHost(this.world, flags, host);
    },
  });
}
