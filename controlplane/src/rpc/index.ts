/** The services of the operators' port. */
import {
  AbandonedResourceService,
  AuditService,
  agent,
  type BoundService,
  CredentialService,
  createHealthBoard,
  createReflection,
  DiscoveryService,
  ErasureCertificateService,
  FleetService,
  type HealthBoard,
  HistoryService,
  HostService,
  PlanService,
  RackService,
  SecretsService,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/api';
import { audited } from '../audit/index.ts';
import { createAbandonedService } from './abandoned.ts';
import { createAuditService } from './audit.ts';
import { createCredentialService } from './credentials.ts';
import { createDiscoveryService } from './discovery.ts';
import { createEnrolmentService } from './enrolment.ts';
import { createErasureService } from './erasures.ts';
import { createFleetService } from './fleet.ts';
import { createHistoryService } from './history.ts';
import { createHostService } from './hosts.ts';
import { createPlanService } from './plans.ts';
import type { RpcDependencies } from './ports.ts';
import { createRackService } from './racks.ts';
import { createSecretsService } from './secrets.ts';
import { createTemplateService } from './templates.ts';
import { createWorkflowBatchService } from './workflow-batches.ts';
import { createWorkflowService } from './workflows.ts';

export { createHost } from './create-host.ts';
export type { HostsPort, RpcDependencies } from './ports.ts';

const services = [
  HostService,
  RackService,
  CredentialService,
  ErasureCertificateService,
  FleetService,
  AbandonedResourceService,
  AuditService,
  DiscoveryService,
  HistoryService,
  PlanService,
  SecretsService,
  TemplateService,
  WorkflowService,
  WorkflowBatchService,
  agent.EnrolmentService,
];

export interface OperatorServices {
  readonly services: readonly BoundService[];
  /** Services, by full name, that need no admin token. */
  readonly openServices: readonly string[];
  readonly health: HealthBoard;
}

/** Everything that the operators' port serves, health and reflection included. */
export function createOperatorServices(deps: RpcDependencies): OperatorServices {
  const health = createHealthBoard(services.map(({ typeName }) => typeName));
  const own = [
    createHostService(deps),
    createRackService(deps),
    createCredentialService(deps),
    createErasureService(deps),
    createFleetService(deps),
    createAbandonedService(deps),
    createAuditService(deps),
    createDiscoveryService(deps),
    createHistoryService(deps),
    createPlanService(deps),
    createSecretsService(deps),
    createTemplateService(deps),
    createWorkflowService(deps),
    createWorkflowBatchService(deps),
    createEnrolmentService(deps),
  ];
  return {
    services: [
      ...(deps.audit === undefined ? own : audited(own, deps.audit, deps.actor)),
      health.service,
      createReflection([...services, health.service.service]),
    ],
    openServices: [agent.EnrolmentService.typeName, health.service.service.typeName],
    health,
  };
}
