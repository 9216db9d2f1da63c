/** A client of each service that operators call, on one channel and with one token. */
import {
  AbandonedResourceService,
  AccessService,
  AuditService,
  AuthorityService,
  CredentialService,
  DiscoveryService,
  ErasureCertificateService,
  EventService,
  EventSinkService,
  FleetService,
  HistoryService,
  HostService,
  PlanService,
  PoolService,
  RackService,
  SecretsService,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/messages';
import type { Channel } from './channel.ts';
import { type Client, createClient } from './client.ts';

export interface OperatorClients {
  readonly access: Client<typeof AccessService>;
  readonly hosts: Client<typeof HostService>;
  readonly racks: Client<typeof RackService>;
  readonly credentials: Client<typeof CredentialService>;
  readonly erasures: Client<typeof ErasureCertificateService>;
  readonly events: Client<typeof EventService>;
  readonly eventSinks: Client<typeof EventSinkService>;
  readonly fleet: Client<typeof FleetService>;
  readonly abandoned: Client<typeof AbandonedResourceService>;
  readonly audit: Client<typeof AuditService>;
  readonly discovery: Client<typeof DiscoveryService>;
  readonly history: Client<typeof HistoryService>;
  readonly plans: Client<typeof PlanService>;
  readonly pools: Client<typeof PoolService>;
  readonly secrets: Client<typeof SecretsService>;
  readonly templates: Client<typeof TemplateService>;
  readonly authorities: Client<typeof AuthorityService>;
  readonly workflows: Client<typeof WorkflowService>;
  readonly workflowBatches: Client<typeof WorkflowBatchService>;
}

/** The channel stays the caller's, to close. */
export function operatorClients(channel: Channel, token: string): OperatorClients {
  const defaults = { headers: { authorization: `Bearer ${token}` } };
  return {
    access: createClient(AccessService, channel, defaults),
    hosts: createClient(HostService, channel, defaults),
    racks: createClient(RackService, channel, defaults),
    credentials: createClient(CredentialService, channel, defaults),
    erasures: createClient(ErasureCertificateService, channel, defaults),
    events: createClient(EventService, channel, defaults),
    eventSinks: createClient(EventSinkService, channel, defaults),
    fleet: createClient(FleetService, channel, defaults),
    abandoned: createClient(AbandonedResourceService, channel, defaults),
    audit: createClient(AuditService, channel, defaults),
    discovery: createClient(DiscoveryService, channel, defaults),
    history: createClient(HistoryService, channel, defaults),
    plans: createClient(PlanService, channel, defaults),
    pools: createClient(PoolService, channel, defaults),
    secrets: createClient(SecretsService, channel, defaults),
    templates: createClient(TemplateService, channel, defaults),
    authorities: createClient(AuthorityService, channel, defaults),
    workflows: createClient(WorkflowService, channel, defaults),
    workflowBatches: createClient(WorkflowBatchService, channel, defaults),
  };
}
