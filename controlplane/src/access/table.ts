/**
 * Which role each method asks for at least, and how far a caller with a scope reaches with it.
 *
 * Invariants:
 * 1. Every method that the operators' port serves has a row; one without is refused to everybody.
 * 2. A row is stricter than its neighbours only with a reason beside it.
 */
import { DeletionMode, type PlanRunRequest, Role } from '@rackwright/api';

/** How a caller with a scope is kept to it. Who has none is asked for the role alone. */
export type Reach =
  /** Served without a token: the service asks for proofs of its own, or tells nothing. */
  | { readonly kind: 'open' }
  /** Holds nothing of any rack. */
  | { readonly kind: 'self' }
  /** Concerns every rack: refused to a caller with a scope. */
  | { readonly kind: 'fleet' }
  /** Answered from records in scope alone. */
  | { readonly kind: 'seen' }
  /** `field` names a host, or what is below one: the host has to be in scope. */
  | { readonly kind: 'host'; readonly field: string }
  /** `field` names a rack, all of which has to be in scope. */
  | { readonly kind: 'rack'; readonly field: string }
  /** `field` names another resource, which has to be in scope as it is. */
  | { readonly kind: 'resource'; readonly field: string }
  /** `field` holds a host or a line to be made: where it would be has to be in scope. */
  | { readonly kind: 'made'; readonly field: string }
  /** A batch: its hosts are chosen among those in scope. */
  | { readonly kind: 'batch' };

/** What a method asks of its caller. */
export interface Row {
  readonly role: Role;
  readonly reach: Reach;
  /** A role above `role` that this very request asks for. */
  readonly raised?: (request: Readonly<Record<string, unknown>>) => Role | undefined;
}

const viewer = Role.VIEWER;
const operator = Role.OPERATOR;
const admin = Role.ADMIN;
const open = { role: Role.UNSPECIFIED, reach: { kind: 'open' } } as const;
const self = { kind: 'self' } as const;
const fleet = { kind: 'fleet' } as const;
const seen = { kind: 'seen' } as const;
const host = (field = 'name') => ({ kind: 'host', field }) as const;
const rack = (field = 'name') => ({ kind: 'rack', field }) as const;
const resource = (field = 'name') => ({ kind: 'resource', field }) as const;
const made = (field: string) => ({ kind: 'made', field }) as const;

const ofHost = { role: operator, reach: host() } as const;
const ofRack = { role: admin, reach: rack() } as const;
const ofFleet = { role: admin, reach: fleet } as const;
const read = { role: viewer, reach: seen } as const;

/** By "SERVICE/Method", the service by its full name. */
export const accessTable: Readonly<Record<string, Row>> = {
  ...under('rackwright.v1.HostService', {
    CreateHost: { role: operator, reach: made('host') },
    GetHost: { role: viewer, reach: host() },
    ListHosts: read,
    UpdateHost: { role: operator, reach: host('host.name') },
    // By force a record goes without proof of erasure, and whatever still runs is left behind.
    DeleteHost: {
      ...ofHost,
      raised: ({ mode }) => (mode === DeletionMode.FORCE ? admin : undefined),
    },
    WatchHosts: { role: viewer, reach: host() },
    VerifyHost: ofHost,
    InspectHost: ofHost,
    CleanHost: ofHost,
    AbortRun: ofHost,
    // Who vouches that a machine is cut off answers for the data of whoever had it before.
    ReleaseHold: {
      ...ofHost,
      raised: ({ physicallyDisconnected }) => (physicallyDisconnected === true ? admin : undefined),
    },
    SetHostPower: ofHost,
    RetryHost: ofHost,
    ServiceHost: ofHost,
    ProvisionHost: ofHost,
    ReimageHost: ofHost,
    ReleaseHost: ofHost,
    RescueHost: ofHost,
    AdoptHost: ofHost,
    ClaimHost: ofHost,
    UnclaimHost: ofHost,
    HoldHost: ofHost,
    ResumeRun: ofHost,
    SkipStep: ofHost,
    CancelHostDeletion: ofHost,
    ExplainHost: { role: viewer, reach: host() },
    ListCleanSteps: { role: viewer, reach: host() },
    ListHostRevisions: { role: viewer, reach: host() },
  }),
  ...under('rackwright.v1.RackService', {
    CreateRack: ofFleet,
    GetRack: read,
    ListRacks: read,
    // Discovery, limits and power policy act on every host of the rack.
    UpdateRack: { role: admin, reach: rack('rack.name') },
    DeleteRack: ofFleet,
    WatchRacks: read,
    // It names hosts of every pool.
    ExplainRack: { role: viewer, reach: rack() },
    // Whoever holds one becomes the rack's agent, and is sent its BMCs' passwords.
    CreateJoinToken: { role: admin, reach: rack('rack') },
    RevokeAgent: ofRack,
    // Stopping is safe, and whoever works in a rack may have to stop it and go on.
    FreezeRack: { role: operator, reach: rack() },
    ThawRack: { role: operator, reach: rack() },
    AcceptRestoredStore: ofRack,
  }),
  ...under('rackwright.v1.CredentialService', {
    CreateCredential: ofFleet,
    GetCredential: read,
    ListCredentials: read,
    UpdateCredential: ofFleet,
    DeleteCredential: ofFleet,
  }),
  ...under('rackwright.v1.ErasureCertificateService', {
    GetErasureCertificate: read,
    ListErasureCertificates: read,
    GetTrust: { role: viewer, reach: self },
  }),
  ...under('rackwright.v1.FleetService', {
    // What holds for every rack holds for those in scope, too.
    GetFleet: { role: viewer, reach: self },
    UpdateFleet: ofFleet,
    FreezeFleet: ofFleet,
    ThawFleet: ofFleet,
  }),
  ...under('rackwright.v1.AbandonedResourceService', {
    GetAbandonedResource: read,
    ListAbandonedResources: read,
    // It lifts the fence around a machine that may still act.
    ResolveAbandonedResource: { role: admin, reach: resource() },
  }),
  ...under('rackwright.v1.AuditService', { ListAuditRecords: read }),
  ...under('rackwright.v1.DiscoveryService', {
    GetDiscoveredMachine: read,
    ListDiscoveredMachines: read,
    AcceptDiscoveredMachine: { role: operator, reach: resource() },
    DeleteDiscoveredMachine: { role: operator, reach: resource() },
    CreateExpectedHost: { role: operator, reach: made('expected_host') },
    GetExpectedHost: read,
    ListExpectedHosts: read,
    UpdateExpectedHost: { role: operator, reach: resource('expected_host.name') },
    DeleteExpectedHost: { role: operator, reach: resource() },
  }),
  ...under('rackwright.v1.HistoryService', {
    DiffHost: { role: viewer, reach: host() },
    GetHostRun: { role: viewer, reach: host() },
    ListHostRuns: { role: viewer, reach: host('parent') },
    ExplainRun: { role: viewer, reach: host() },
  }),
  ...under('rackwright.v1.PlanService', {
    // A plan is kept, and takes the place of an older one.
    PlanRun: {
      role: operator,
      reach: host('parent'),
      // An operator may start what an administrator has planned.
      raised: ({ run }) => (isForcedDelete(run) ? admin : undefined),
    },
    GetPlan: { role: viewer, reach: host() },
    StartPlan: ofHost,
  }),
  ...under('rackwright.v1.PoolService', {
    // Its selector may come to mean hosts of any rack.
    CreatePool: { role: operator, reach: fleet },
    GetPool: read,
    ListPools: read,
    UpdatePool: { role: operator, reach: fleet },
    DeletePool: { role: operator, reach: fleet },
    WatchPools: { role: viewer, reach: resource() },
    PausePool: { role: operator, reach: resource() },
    ResumePool: { role: operator, reach: resource() },
    ApprovePool: { role: operator, reach: resource() },
    ListPoolHosts: read,
    ListDeployHistory: read,
    PlanRollout: read,
    ExplainPool: read,
  }),
  ...under('rackwright.v1.SecretsService', {
    GetSecretsKey: ofFleet,
    RotateSecretsKey: ofFleet,
  }),
  ...under('rackwright.v1.AuthorityService', {
    // It names the racks that a rotation waits for.
    GetAuthorities: { role: viewer, reach: fleet },
    RotateAuthority: ofFleet,
    AdvanceAuthority: ofFleet,
  }),
  ...under('rackwright.v1.TemplateService', {
    // Hosts of every rack run the same templates.
    CreateTemplate: { role: operator, reach: fleet },
    GetTemplate: { role: viewer, reach: self },
    ListTemplates: { role: viewer, reach: self },
    UpdateTemplate: { role: operator, reach: fleet },
    DeleteTemplate: { role: operator, reach: fleet },
  }),
  ...under('rackwright.v1.WorkflowService', {
    CreateWorkflow: { role: operator, reach: host('parent') },
    GetWorkflow: { role: viewer, reach: host() },
    ListWorkflows: { role: viewer, reach: host('parent') },
    UpdateWorkflow: { role: operator, reach: host('workflow.name') },
    DeleteWorkflow: ofHost,
    RunWorkflow: ofHost,
    CancelWorkflow: ofHost,
    GetWorkflowRun: { role: viewer, reach: host() },
    ListWorkflowRuns: { role: viewer, reach: host('parent') },
    ExplainWorkflow: { role: viewer, reach: host() },
    ReadStepOutput: { role: viewer, reach: host() },
  }),
  ...under('rackwright.v1.WorkflowBatchService', {
    CreateWorkflowBatch: { role: operator, reach: { kind: 'batch' } },
    GetWorkflowBatch: read,
    ListWorkflowBatches: read,
    ListWorkflowBatchHosts: read,
    CancelWorkflowBatch: { role: operator, reach: resource() },
    DeleteWorkflowBatch: { role: operator, reach: resource() },
  }),
  ...under('rackwright.v1.AccessService', {
    CreateToken: ofFleet,
    GetToken: ofFleet,
    ListTokens: ofFleet,
    DeleteToken: ofFleet,
    WhoAmI: { role: viewer, reach: self },
  }),
  // Join tokens and registered keys are its own proofs.
  ...under('rackwright.agent.v1.EnrolmentService', { IssueCertificate: open }),
  ...under('grpc.health.v1.Health', { Check: open, List: open, Watch: open }),
  ...under('grpc.reflection.v1.ServerReflection', {
    ServerReflectionInfo: { role: viewer, reach: self },
  }),
};

/** Services whose every method is open. */
export function openServices(): string[] {
  const all = new Map<string, boolean>();
  for (const [path, { reach }] of Object.entries(accessTable)) {
    const [service = ''] = path.split('/');
    all.set(service, (all.get(service) ?? true) && reach.kind === 'open');
  }
  return [...all].filter(([, isOpen]) => isOpen).map(([service]) => service);
}

/** Whether the method only looks: it is answered from records in scope. */
export function isReading({ role }: Row): boolean {
  return role === viewer;
}

function isForcedDelete(run: unknown): boolean {
  const planned = run as PlanRunRequest['run'] | undefined;
  return planned?.case === 'delete' && planned.value.mode === DeletionMode.FORCE;
}

function under(
  service: string,
  rows: Readonly<Record<string, Row>>,
): Readonly<Record<string, Row>> {
  return Object.fromEntries(
    Object.entries(rows).map(([method, row]) => [`${service}/${method}`, row]),
  );
}
