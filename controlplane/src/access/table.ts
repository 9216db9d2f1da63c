/**
 * The least role for each method, and how far a caller with a scope reaches with it.
 *
 * Invariants:
 * 1. Every method that the operators' port serves has a row; one without is refused to everybody.
 * 2. A row is stricter than its neighbours only with a reason beside it.
 */
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import {
  AbandonedResourceService,
  AccessService,
  AuditService,
  AuthorityService,
  agent,
  CredentialService,
  DeletionMode,
  DiscoveryService,
  ErasureCertificateService,
  EventService,
  EventSinkService,
  FleetService,
  Health,
  HistoryService,
  HostService,
  type PlanRunRequest,
  PlanService,
  PoolService,
  RackService,
  Role,
  SecretsService,
  ServerReflection,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/messages';
import { isUnscoped, type Principal } from './principal.ts';

/** How a method keeps to the scope of its caller. Without a scope only the role counts. */
export type Reach =
  /** Served without a token: the service checks its own proofs, or reveals nothing. */
  | { readonly kind: 'open' }
  /** The response contains nothing of any rack. */
  | { readonly kind: 'self' }
  /** Concerns every rack: refused to a caller with a scope. */
  | { readonly kind: 'fleet' }
  /** The response is made from records in scope alone. */
  | { readonly kind: 'seen' }
  /** `field` names a host, or a resource below one: the host has to be in scope. */
  | { readonly kind: 'host'; readonly field: string }
  /** `field` names a rack, and the whole rack has to be in scope. */
  | { readonly kind: 'rack'; readonly field: string }
  /** `field` names another resource, which has to be in scope in its present state. */
  | { readonly kind: 'resource'; readonly field: string }
  /** `field` holds a host or a line to create: its place has to be in scope. */
  | { readonly kind: 'made'; readonly field: string }
  /** A batch: its hosts are chosen among those in scope. */
  | { readonly kind: 'batch' };

/** What a method requires of its caller. */
export interface Row {
  readonly role: Role;
  readonly reach: Reach;
  /**
   * Whether it may change something. Then the audit records it, and every resource that it names
   * has to be in scope. A method that changes nothing is answered from records in scope.
   */
  readonly changes: boolean;
  /** A role above `role` that this particular request requires. */
  readonly raised?: (request: Readonly<Record<string, unknown>>) => Role | undefined;
  /**
   * It says to which BMC a password is sent. For a credential that names no networks, only an
   * administrator may do so. The result shows only after the merge with the present record, so the
   * handler checks it (`host/api/destination.ts`).
   */
  readonly pointsBmc?: true;
  /** It names one resource and returns a host, which has to be in scope too. */
  readonly answersHost?: true;
}

const viewer = Role.VIEWER;
const operator = Role.OPERATOR;
const admin = Role.ADMIN;
const self = { kind: 'self' } as const;
const fleet = { kind: 'fleet' } as const;
const seen = { kind: 'seen' } as const;
const host = (field = 'name') => ({ kind: 'host', field }) as const;
const rack = (field = 'name') => ({ kind: 'rack', field }) as const;
const resource = (field = 'name') => ({ kind: 'resource', field }) as const;
const made = (field: string) => ({ kind: 'made', field }) as const;

const reads = (reach: Reach, role: Role = viewer) => ({ role, reach, changes: false });
const asks = (reach: Reach, role: Role = operator) => ({ role, reach, changes: true });
const ofHost = asks(host());
const ofRack = asks(rack(), admin);
const ofFleet = asks(fleet, admin);
const read = reads(seen);
const open = { kind: 'open' } as const;

/** By "SERVICE/Method", with the full name of the service. */
export const accessTable: Readonly<Record<string, Row>> = {
  ...under(HostService, {
    CreateHost: { ...asks(made('host')), pointsBmc: true },
    GetHost: reads(host()),
    ListHosts: read,
    CountHosts: read,
    UpdateHost: { ...asks(host('host.name')), pointsBmc: true },
    // A forced deletion needs no proof of erasure, and leaves running operations behind.
    DeleteHost: {
      ...ofHost,
      raised: ({ mode }) => (mode === DeletionMode.FORCE ? admin : undefined),
    },
    WatchHosts: reads(host()),
    VerifyHost: ofHost,
    InspectHost: ofHost,
    CleanHost: ofHost,
    AbortRun: ofHost,
    // Who confirms that a machine is isolated answers for the data of its earlier user.
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
    ExplainHost: reads(host()),
    ListCleanSteps: reads(host()),
    ListHostRevisions: reads(host()),
    GetHostInventory: reads(host()),
    // It asks a BMC, and for that sends its password to the agent.
    ReadHostBmc: reads(host(), operator),
    // A console may show secrets of what runs there.
    WatchHostConsole: reads(host(), operator),
  }),
  ...under(RackService, {
    CreateRack: ofFleet,
    GetRack: read,
    ListRacks: read,
    // Discovery, limits and power policy act on every host of the rack.
    UpdateRack: asks(rack('rack.name'), admin),
    DeleteRack: ofFleet,
    WatchRacks: read,
    // It names hosts of every pool.
    ExplainRack: reads(rack()),
    // The holder of a join token becomes the rack's agent, and receives the BMC passwords.
    CreateJoinToken: asks(rack('rack'), admin),
    RevokeAgent: ofRack,
    // To stop is safe, and an operator in a rack may have to stop it and resume it.
    FreezeRack: asks(rack()),
    ThawRack: asks(rack()),
    AcceptRestoredStore: ofRack,
    // It fills a cache and harms nobody: the oldest image is removed first.
    PrefetchImage: asks(rack()),
    ListPrefetchedImages: reads(rack()),
    DropPrefetchedImage: asks(rack()),
  }),
  ...under(CredentialService, {
    CreateCredential: ofFleet,
    GetCredential: read,
    ListCredentials: read,
    UpdateCredential: ofFleet,
    DeleteCredential: ofFleet,
  }),
  ...under(ErasureCertificateService, {
    GetErasureCertificate: read,
    ListErasureCertificates: read,
    GetErasureDocument: read,
    ListErasureDocuments: read,
    GetTrust: reads(self),
  }),
  // Each record is shown as far as it is in scope.
  ...under(EventService, { WatchEvents: read, ListEvents: read }),
  // A URL may contain a secret, and events of every rack are sent to it.
  ...under(EventSinkService, {
    CreateEventSink: ofFleet,
    GetEventSink: reads(fleet, admin),
    ListEventSinks: reads(fleet, admin),
    UpdateEventSink: ofFleet,
    DeleteEventSink: ofFleet,
    ListDeadLetters: reads(fleet, admin),
    ReplayDeadLetters: ofFleet,
    DropDeadLetters: ofFleet,
  }),
  ...under(FleetService, {
    // A rule for every rack also applies to the racks in scope.
    GetFleet: reads(self),
    UpdateFleet: ofFleet,
    FreezeFleet: ofFleet,
    ThawFleet: ofFleet,
  }),
  ...under(AbandonedResourceService, {
    GetAbandonedResource: read,
    ListAbandonedResources: read,
    // It lifts the fence around a machine that may still act.
    ResolveAbandonedResource: asks(resource(), admin),
  }),
  ...under(AuditService, { ListAuditRecords: read }),
  ...under(DiscoveryService, {
    GetDiscoveredMachine: read,
    ListDiscoveredMachines: read,
    AcceptDiscoveredMachine: { ...asks(resource()), pointsBmc: true, answersHost: true },
    DeleteDiscoveredMachine: asks(resource()),
    CreateExpectedHost: { ...asks(made('expected_host')), pointsBmc: true },
    GetExpectedHost: read,
    ListExpectedHosts: read,
    UpdateExpectedHost: { ...asks(resource('expected_host.name')), pointsBmc: true },
    DeleteExpectedHost: asks(resource()),
  }),
  ...under(HistoryService, {
    DiffHost: reads(host()),
    GetHostRun: reads(host()),
    ListHostRuns: reads(host('parent')),
    ExplainRun: reads(host()),
  }),
  ...under(PlanService, {
    // A plan is stored, and replaces an older one.
    PlanRun: {
      ...asks(host('parent')),
      // An operator may start what an administrator has planned.
      raised: ({ run }) => (isForcedDelete(run) ? admin : undefined),
    },
    GetPlan: reads(host()),
    StartPlan: ofHost,
  }),
  ...under(PoolService, {
    // Its selector may later match hosts of any rack.
    CreatePool: asks(fleet),
    GetPool: read,
    ListPools: read,
    UpdatePool: asks(fleet),
    DeletePool: asks(fleet),
    WatchPools: reads(resource()),
    PausePool: asks(resource()),
    ResumePool: asks(resource()),
    ApprovePool: asks(resource()),
    ListPoolHosts: read,
    ListDeployHistory: read,
    // For a pool that does not exist yet, a registry is asked for the tag.
    PlanRollout: { ...read, raised: ({ pool }) => (pool === undefined ? undefined : operator) },
    ExplainPool: read,
  }),
  ...under(SecretsService, {
    GetSecretsKey: reads(fleet, admin),
    RotateSecretsKey: ofFleet,
  }),
  ...under(AuthorityService, {
    // It names the racks that a rotation waits for.
    GetAuthorities: reads(fleet),
    RotateAuthority: ofFleet,
    AdvanceAuthority: ofFleet,
  }),
  ...under(TemplateService, {
    // Hosts of every rack run the same templates.
    CreateTemplate: asks(fleet),
    GetTemplate: reads(self),
    ListTemplates: reads(self),
    UpdateTemplate: asks(fleet),
    DeleteTemplate: asks(fleet),
  }),
  ...under(WorkflowService, {
    CreateWorkflow: asks(host('parent')),
    GetWorkflow: reads(host()),
    ListWorkflows: reads(host('parent')),
    UpdateWorkflow: asks(host('workflow.name')),
    DeleteWorkflow: ofHost,
    RunWorkflow: ofHost,
    CancelWorkflow: ofHost,
    GetWorkflowRun: reads(host()),
    ListWorkflowRuns: reads(host('parent')),
    ExplainWorkflow: reads(host()),
    ReadStepOutput: reads(host()),
  }),
  ...under(WorkflowBatchService, {
    CreateWorkflowBatch: asks({ kind: 'batch' }),
    GetWorkflowBatch: read,
    ListWorkflowBatches: read,
    ListWorkflowBatchHosts: read,
    CancelWorkflowBatch: asks(resource()),
    DeleteWorkflowBatch: asks(resource()),
  }),
  ...under(AccessService, {
    CreateToken: ofFleet,
    GetToken: reads(fleet, admin),
    ListTokens: reads(fleet, admin),
    DeleteToken: ofFleet,
    EndSessions: ofFleet,
    WhoAmI: reads(self),
  }),
  // Join tokens and registered keys are the proofs of this service.
  ...under(agent.EnrolmentService, {
    IssueCertificate: asks(open, Role.UNSPECIFIED),
  }),
  ...under(Health, {
    Check: reads(open, Role.UNSPECIFIED),
    List: reads(open, Role.UNSPECIFIED),
    Watch: reads(open, Role.UNSPECIFIED),
  }),
  ...under(ServerReflection, {
    ServerReflectionInfo: reads(self),
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

/** Whether a call of the method may change something; one without a row may. */
export function changesSomething({ parent, name }: DescMethod): boolean {
  return accessTable[`${parent.typeName}/${name}`]?.changes ?? true;
}

/**
 * The methods that a caller's role and scope permit, by path, sorted. A higher role for particular
 * requests is not considered.
 */
export function methodsFor({ role, scope }: Pick<Principal, 'role' | 'scope'>): string[] {
  const carries = ({ role: least, reach }: Row): boolean =>
    role >= least && (reach.kind !== 'fleet' || isUnscoped(scope));
  return Object.entries(accessTable)
    .filter(([, row]) => carries(row))
    .map(([path]) => path)
    .sort();
}

function isForcedDelete(run: unknown): boolean {
  const planned = run as PlanRunRequest['run'] | undefined;
  return planned?.case === 'delete' && planned.value.mode === DeletionMode.FORCE;
}

/** One row for each method, by its name: a missing row does not compile (1). */
type Rows<S extends DescService> = {
  readonly [Method in keyof S['method'] & string as Capitalize<Method>]: Row;
};

function under<S extends DescService>(service: S, rows: Rows<S>): Readonly<Record<string, Row>> {
  return Object.fromEntries(
    Object.entries<Row>(rows).map(([method, row]) => [`${service.typeName}/${method}`, row]),
  );
}
