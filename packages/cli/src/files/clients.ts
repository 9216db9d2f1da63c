/** A client of each service that objects of files belong to, on one connection. */
import {
  CredentialService,
  DiscoveryService,
  FleetService,
  HostService,
  PoolService,
  RackService,
  TemplateService,
  WorkflowService,
} from '@rackwright/messages';
import { createClient, type OperatorClients } from '@rackwright/rpc';
import type { Connection } from '../settings.ts';

export type FileClients = Pick<
  OperatorClients,
  'racks' | 'credentials' | 'fleet' | 'templates' | 'discovery' | 'hosts' | 'workflows' | 'pools'
>;

/** The channel stays the caller's, to close. */
export function fileClients({ channel, defaults }: Connection): FileClients {
  return {
    racks: createClient(RackService, channel, defaults),
    credentials: createClient(CredentialService, channel, defaults),
    fleet: createClient(FleetService, channel, defaults),
    templates: createClient(TemplateService, channel, defaults),
    discovery: createClient(DiscoveryService, channel, defaults),
    hosts: createClient(HostService, channel, defaults),
    pools: createClient(PoolService, channel, defaults),
    workflows: createClient(WorkflowService, channel, defaults),
  };
}
