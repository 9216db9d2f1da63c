/** The services of the operators' port. */
import {
  AbandonedResourceService,
  AccessService,
  AuditService,
  AuthorityService,
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
  PoolService,
  RackService,
  SecretsService,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/api';
import {
  actorOf,
  changesSomething,
  gated,
  type HostPlaces,
  openServices,
  type Seat,
  type SignIn,
} from '../access/index.ts';
import { auditCalls } from '../audit/index.ts';
import { createAbandonedService } from './abandoned.ts';
import { createAuditService } from './audit.ts';
import { createAuthorityService } from './authorities.ts';
import { createCredentialService } from './credentials.ts';
import { createDiscoveryService } from './discovery.ts';
import { createEnrolmentService } from './enrolment.ts';
import { createErasureService } from './erasures.ts';
import { createFleetService } from './fleet.ts';
import { createHistoryService } from './history.ts';
import { createHostService } from './hosts.ts';
import { createPlanService } from './plans.ts';
import { createPoolService } from './pools.ts';
import type { RpcDependencies } from './ports.ts';
import { createRackService } from './racks.ts';
import { createSecretsService } from './secrets.ts';
import { createTemplateService } from './templates.ts';
import { createAccessService } from './tokens.ts';
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
  AuthorityService,
  DiscoveryService,
  HistoryService,
  PlanService,
  PoolService,
  SecretsService,
  TemplateService,
  WorkflowService,
  WorkflowBatchService,
  AccessService,
  agent.EnrolmentService,
];

export interface OperatorServices {
  readonly services: readonly BoundService[];
  /** Services, by full name, that need no admin token. */
  readonly openServices: readonly string[];
  readonly health: HealthBoard;
}

/** Makes each service for whoever calls. */
const makers = [
  createHostService,
  createRackService,
  createCredentialService,
  createErasureService,
  createFleetService,
  createAbandonedService,
  createAuditService,
  createAuthorityService,
  createDiscoveryService,
  createHistoryService,
  createPlanService,
  createPoolService,
  createSecretsService,
  createTemplateService,
  createWorkflowService,
  createWorkflowBatchService,
  createAccessService,
  createEnrolmentService,
] as const;

/** What services need that does not depend on who calls. */
export type SharedDependencies = Omit<RpcDependencies, 'actor' | 'principal'>;

/** Everything that the operators' port serves, health and reflection included. */
export function createOperatorServices(
  deps: SharedDependencies,
  signIn: SignIn,
  places?: HostPlaces,
): OperatorServices {
  const health = createHealthBoard(services.map(({ typeName }) => typeName));
  const reflection = createReflection([...services, health.service.service]);
  const { store, audit } = deps;
  const factories = makers.map((make) => (seat: Seat) => make({ ...deps, ...seat }));
  const calls = audit && auditCalls(audit, changesSomething);
  const letIn = calls === undefined ? {} : { letIn: calls.letIn };
  const own = gated([...factories, () => reflection], { store, signIn, places, ...letIn });
  return {
    services: [
      ...(calls?.atTheDoor(own, (context) => actorOf(signIn, context)) ?? own),
      health.service,
    ],
    openServices: openServices(),
    health,
  };
}
