/** The shared parts of every command on hosts. */
import { type Host, HostSchema, HostService } from '@rackwright/messages';
import { type Client, createClient } from '@rackwright/rpc';
import type { CommandIo } from '../../command-io.ts';
import { connectionFlags, idPositional, outputFlag, type SharedFlags } from '../../flags.ts';
import { hostFields } from '../../output/host.ts';
import { isForPrograms, printAs, printFields } from '../../output/show.ts';
import type { Connection } from '../../settings.ts';
import { callsOf } from '../frame/calls.ts';

export const hostFlags = { ...connectionFlags, ...outputFlag };
export const hostAliases = { o: 'output' } as const;
/** The host that a command is for. */
export const hostPositional = idPositional('host', 'Id of the host');
/** HOST */
export const hostArgument = { kind: 'tuple', parameters: [hostPositional] } as const;

export const reasonFlag = {
  reason: { kind: 'parsed', parse: String, default: '', brief: 'Why, one line' },
} as const;

export { requestFlag } from '../../flags.ts';

export type HostClient = Client<typeof HostService>;

/** A client of HostService on a connection that is there. */
export function hostClient({ channel, defaults }: Connection): HostClient {
  return createClient(HostService, channel, defaults);
}

/** Runs `work` with a client of HostService. */
export const withHosts = callsOf(HostService);

/** Prints one host. */
export function showHost(io: CommandIo, { output }: SharedFlags, host: Host): void {
  if (isForPrograms(output)) printAs(io, output, HostSchema, host);
  else printFields(io, hostFields(host, io.clock));
}

/** The command that explains the state of a host. */
export function hintFor(name: string): string {
  return `see \`rackwright host explain ${name.replace('hosts/', '')}\``;
}
