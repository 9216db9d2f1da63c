/** The operators' API of the demo's control plane. */
import {
  CredentialService,
  connect,
  createClient,
  ErasureCertificateService,
  HostService,
  RackService,
} from '@rackwright/api';

export interface ClientOptions {
  /** "host:port" */
  readonly target: string;
  readonly caPem: string;
  readonly token: string;
}

export type Clients = ReturnType<typeof openClients>;

export function openClients({ target, caPem, token }: ClientOptions) {
  const channel = connect({ target, caPem, serverName: 'localhost' });
  const headers = { authorization: `Bearer ${token}` };
  return {
    hosts: createClient(HostService, channel, { headers }),
    racks: createClient(RackService, channel, { headers }),
    credentials: createClient(CredentialService, channel, { headers }),
    erasures: createClient(ErasureCertificateService, channel, { headers }),
    close: () => channel.close(),
  };
}
