/** Clients of the services, by Connect over the page's own origin, and their failures. */
import { type Client, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import {
  AccessService,
  AuditService,
  DiscoveryService,
  ErasureCertificateService,
  FleetService,
  googleRpc,
  HistoryService,
  HostService,
  PlanService,
  PoolService,
  RackService,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/messages';
import type { Failure } from '../logic/failure.ts';

/** The timeout of calls without one of their own; streams have none. */
const callTimeoutMs = 30_000;

export interface ConsoleClients {
  readonly access: Client<typeof AccessService>;
  readonly audit: Client<typeof AuditService>;
  readonly discovery: Client<typeof DiscoveryService>;
  readonly erasures: Client<typeof ErasureCertificateService>;
  readonly fleet: Client<typeof FleetService>;
  readonly history: Client<typeof HistoryService>;
  readonly hosts: Client<typeof HostService>;
  readonly plans: Client<typeof PlanService>;
  readonly pools: Client<typeof PoolService>;
  readonly racks: Client<typeof RackService>;
  readonly templates: Client<typeof TemplateService>;
  readonly workflows: Client<typeof WorkflowService>;
  readonly batches: Client<typeof WorkflowBatchService>;
}

/** Clients of the control plane that has served the page. The sign-in's cookie goes along. */
export function openClients(baseUrl: string): ConsoleClients {
  const transport = createConnectTransport({
    baseUrl,
    useBinaryFormat: true,
    defaultTimeoutMs: callTimeoutMs,
    fetch: (input, init) =>
      fetch(input, { ...init, credentials: 'same-origin', redirect: 'error' }),
  });
  return {
    access: createClient(AccessService, transport),
    audit: createClient(AuditService, transport),
    discovery: createClient(DiscoveryService, transport),
    erasures: createClient(ErasureCertificateService, transport),
    fleet: createClient(FleetService, transport),
    history: createClient(HistoryService, transport),
    hosts: createClient(HostService, transport),
    plans: createClient(PlanService, transport),
    pools: createClient(PoolService, transport),
    racks: createClient(RackService, transport),
    templates: createClient(TemplateService, transport),
    workflows: createClient(WorkflowService, transport),
    batches: createClient(WorkflowBatchService, transport),
  };
}

/** A caught value as a failure of the console. */
export function failureOf(caught: unknown): Failure {
  const error = ConnectError.from(caught);
  const [details] = error.findDetails(googleRpc.ErrorInfoSchema);
  const violations = error
    .findDetails(googleRpc.BadRequestSchema)
    .flatMap((each) => each.fieldViolations);
  const [retry] = error.findDetails(googleRpc.RetryInfoSchema);
  const delay = retry?.retryDelay;
  return {
    code: error.code,
    message: error.rawMessage,
    reason: details?.reason ?? '',
    metadata: details?.metadata ?? {},
    violations: violations.map(({ field, description }) => ({ field, description })),
    retryAfterMs: delay && Number(delay.seconds) * 1_000 + delay.nanos / 1_000_000,
    isUnreached: caught instanceof TypeError || error.cause instanceof TypeError,
  };
}
