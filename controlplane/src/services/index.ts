/** The services of the operators' port. */
import {
  AbandonedResourceService,
  AccessService,
  AuditService,
  AuthorityService,
  agent,
  type BoundService,
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
import { createHealthBoard, createReflection, type HealthBoard } from '@rackwright/rpc';
import { createCredentialService } from '../access/api/credentials.ts';
import { createAccessService } from '../access/api/tokens.ts';
import {
  actorOf,
  type CallDependencies,
  changesSomething,
  guarded,
  HostLocations,
  openServices,
  type SignIn,
} from '../access/index.ts';
import { createAuditService } from '../audit/api/audit.ts';
import { auditCalls } from '../audit/index.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { type CallTracing, traceCalls } from '../call/traced.ts';
import { createDiscoveryService } from '../discovery/api/discovery.ts';
import { createEventSinkService } from '../events/api/event-sinks.ts';
import { createEventService } from '../events/api/watch-events.ts';
import { createAbandonedService } from '../history/abandoned.ts';
import { createErasureService } from '../history/erasures.ts';
import { createHistoryService } from '../history/history.ts';
import { createHostService } from '../host/api/hosts.ts';
import { createPlanService } from '../host/api/plans.ts';
import { createAuthorityService } from '../identity/api/authorities.ts';
import { type CallMeter, countCalls } from '../metrics/index.ts';
import { createPoolService } from '../pool/api/pools.ts';
import { createEnrolmentService } from '../rack/enrolment.ts';
import { createFleetService } from '../rack/fleet.ts';
import { createRackService } from '../rack/racks.ts';
import { createSecretsService } from '../secrets/api/secrets.ts';
import { createTemplateService } from '../workflow/api/templates.ts';
import { createWorkflowBatchService } from '../workflow/api/workflow-batches.ts';
import { createWorkflowService } from '../workflow/api/workflows.ts';

export type { HostsPort, RpcDependencies } from '../call/ports.ts';
export { createHost } from '../host/api/create-host.ts';

const services = [
  HostService,
  RackService,
  CredentialService,
  ErasureCertificateService,
  EventService,
  EventSinkService,
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

/** Creates each service for one caller. */
const makers = [
  createHostService,
  createRackService,
  createCredentialService,
  createErasureService,
  createEventService,
  createEventSinkService,
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

/** Dependencies of services that do not depend on the caller. */
export type SharedServiceDependencies = Omit<
  RpcDependencies,
  'actor' | 'principal' | 'traceParent'
> &
  Pick<CallTracing, 'clock' | 'random'> & {
    /** Unset: calls belong only to their callers' traces. */
    readonly recordSpan?: CallTracing['recordSpan'];
    /** Called when a call of an operator has ended. */
    readonly onCall: CallMeter;
  };

/** Everything that the operators' port serves, health and reflection included. */
export function createOperatorServices(
  deps: SharedServiceDependencies,
  signIn: SignIn,
): OperatorServices {
  const health = createHealthBoard(services.map(({ typeName }) => typeName));
  const reflection = createReflection([...services, health.service.service]);
  const { store, audit, clock } = deps;
  const locations = new HostLocations(deps.fleetView);
  const factories = makers.map(
    (make) => (ofCall: CallDependencies) => make({ ...deps, ...ofCall }),
  );
  const calls = audit && auditCalls(audit, changesSomething);
  const letIn = calls === undefined ? {} : { letIn: calls.letIn };
  const tracing = traceCalls(deps);
  const { traceOf } = tracing;
  const guard = { store, signIn, locations, clock, traceOf, ...letIn };
  const own = guarded([...factories, () => reflection], guard);
  const recordingRefusals =
    calls?.recordRefusals(own, (context) => actorOf(signIn, context)) ?? own;
  return {
    services: [...countCalls(tracing.traced(recordingRefusals), deps.onCall), health.service],
    openServices: openServices(),
    health,
  };
}
