/** A client of each service that operators call, on one channel and with one token. */
import { AbandonedResourceService } from './gen/rackwright/v1/abandoned_pb.ts';
import { CredentialService } from './gen/rackwright/v1/credential_pb.ts';
import { ErasureCertificateService } from './gen/rackwright/v1/erasure_pb.ts';
import { FleetService } from './gen/rackwright/v1/fleet_pb.ts';
import { HostService } from './gen/rackwright/v1/host_pb.ts';
import { RackService } from './gen/rackwright/v1/rack_pb.ts';
import type { Channel } from './rpc/channel.ts';
import { type Client, createClient } from './rpc/client.ts';

export interface OperatorClients {
  readonly hosts: Client<typeof HostService>;
  readonly racks: Client<typeof RackService>;
  readonly credentials: Client<typeof CredentialService>;
  readonly erasures: Client<typeof ErasureCertificateService>;
  readonly fleet: Client<typeof FleetService>;
  readonly abandoned: Client<typeof AbandonedResourceService>;
}

/** The channel stays the caller's, to close. */
export function operatorClients(channel: Channel, token: string): OperatorClients {
  const defaults = { headers: { authorization: `Bearer ${token}` } };
  return {
    hosts: createClient(HostService, channel, defaults),
    racks: createClient(RackService, channel, defaults),
    credentials: createClient(CredentialService, channel, defaults),
    erasures: createClient(ErasureCertificateService, channel, defaults),
    fleet: createClient(FleetService, channel, defaults),
    abandoned: createClient(AbandonedResourceService, channel, defaults),
  };
}
