/** The operators' API of the demo's control plane. */
import { connect, type OperatorClients, operatorClients } from '@rackwright/rpc';

export interface ClientOptions {
  /** "host:port" */
  readonly target: string;
  readonly caPem: string;
  readonly token: string;
}

export interface SiteClients extends OperatorClients {
  close(): void;
}

export function openClients({ target, caPem, token }: ClientOptions): SiteClients {
  const channel = connect({ target, caPem, serverName: 'localhost' });
  return { ...operatorClients(channel, token), close: () => channel.close() };
}
