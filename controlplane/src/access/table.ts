/**
 * Which role each method asks for at least, and how far a caller with a scope reaches with it.
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
  /**
   * Whether it may change something: then it is recorded by the audit, and what it names has to be
   * in scope wherever it stands. What does not is answered from records in scope.
   */
  readonly changes: boolean;
  /** A role above `role` that this very request asks for. */
  readonly raised?: (request: Readonly<Record<string, unknown>>) => Role | undefined;
  /**
   * Says to which BMC a password goes: of a credential that names no networks, only an
   * administrator does. What it comes to shows only when it is merged with what there is, so that
   * the handler asks (`host/api/destination.ts`).
   */
  readonly pointsBmc?: true;
  /** Names one thing and answers a host, which has to be in scope too. */
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

const looks = (reach: Reach, role: Role = viewer) => ({ role, reach, changes: false });
const asks = (reach: Reach, role: Role = operator) => ({ role, reach, changes: true });
const ofHost = asks(host());
const ofRack = asks(rack(), admin);
const ofFleet = asks(fleet, admin);
const read = looks(seen);
const open = { kind: 'open' } as const;

/** By "SERVICE/Method", the service by its full name. */
export const accessTable: Readonly<Record<string, Row>> = {
  ...under(HostService, {
    CreateHost: { ...asks(made('host')), pointsBmc: true },
    GetHost: looks(host()),
    ListHosts: read,
    CountHosts: read,
    UpdateHost: { ...asks(host('host.name')), pointsBmc: true },
    // By force a record goes without proof of erasure, and whatever still runs is left behind.
    DeleteHost: {
      ...ofHost,
      raised: ({ mode }) => (mode === DeletionMode.FORCE ? admin : undefined),
    },
    WatchHosts: looks(host()),
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
    ExplainHost: looks(host()),
    ListCleanSteps: looks(host()),
    ListHostRevisions: looks(host()),
    GetHostInventory: looks(host()),
    // Asks a BMC, with a password that is sent to the agent for it.
    ReadHostBmc: looks(host(), operator),
    // A console may show secrets of what runs there.
    WatchHostConsole: looks(host(), operator),
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
    ExplainRack: looks(rack()),
    // Whoever holds one becomes the rack's agent, and is sent its BMCs' passwords.
    CreateJoinToken: asks(rack('rack'), admin),
    RevokeAgent: ofRack,
    // Stopping is safe, and whoever works in a rack may have to stop it and go on.
    FreezeRack: asks(rack()),
    ThawRack: asks(rack()),
    AcceptRestoredStore: ofRack,
    // Fills a cache, and takes nothing from anybody: its oldest goes first.
    PrefetchImage: asks(rack()),
    ListPrefetchedImages: looks(rack()),
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
    GetTrust: looks(self),
  }),
  // Each record is told of as far as it is in scope.
  ...under(EventService, { WatchEvents: read, ListEvents: read }),
  // A URL may hold a secret, and everything of every rack is sent there.
  ...under(EventSinkService, {
    CreateEventSink: ofFleet,
    GetEventSink: looks(fleet, admin),
    ListEventSinks: looks(fleet, admin),
    UpdateEventSink: ofFleet,
    DeleteEventSink: ofFleet,
    ListDeadLetters: looks(fleet, admin),
    ReplayDeadLetters: ofFleet,
    DropDeadLetters: ofFleet,
  }),
  ...under(FleetService, {
    // What holds for every rack holds for those in scope, too.
    GetFleet: looks(self),
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
    DiffHost: looks(host()),
    GetHostRun: looks(host()),
    ListHostRuns: looks(host('parent')),
    ExplainRun: looks(host()),
  }),
  ...under(PlanService, {
    // A plan is kept, and takes the place of an older one.
    PlanRun: {
      ...asks(host('parent')),
      // An operator may start what an administrator has planned.
      raised: ({ run }) => (isForcedDelete(run) ? admin : undefined),
    },
    GetPlan: looks(host()),
    StartPlan: ofHost,
  }),
  ...under(PoolService, {
    // Its selector may come to mean hosts of any rack.
    CreatePool: asks(fleet),
    GetPool: read,
    ListPools: read,
    UpdatePool: asks(fleet),
    DeletePool: asks(fleet),
    WatchPools: looks(resource()),
    PausePool: asks(resource()),
    ResumePool: asks(resource()),
    ApprovePool: asks(resource()),
    ListPoolHosts: read,
    ListDeployHistory: read,
    // Of one that is not there yet, a registry is asked for its tag.
    PlanRollout: { ...read, raised: ({ pool }) => (pool === undefined ? undefined : operator) },
    ExplainPool: read,
  }),
  ...under(SecretsService, {
    GetSecretsKey: looks(fleet, admin),
    RotateSecretsKey: ofFleet,
  }),
  ...under(AuthorityService, {
    // It names the racks that a rotation waits for.
    GetAuthorities: looks(fleet),
    RotateAuthority: ofFleet,
    AdvanceAuthority: ofFleet,
  }),
  ...under(TemplateService, {
    // Hosts of every rack run the same templates.
    CreateTemplate: asks(fleet),
    GetTemplate: looks(self),
    ListTemplates: looks(self),
    UpdateTemplate: asks(fleet),
    DeleteTemplate: asks(fleet),
  }),
  ...under(WorkflowService, {
    CreateWorkflow: asks(host('parent')),
    GetWorkflow: looks(host()),
    ListWorkflows: looks(host('parent')),
    UpdateWorkflow: asks(host('workflow.name')),
    DeleteWorkflow: ofHost,
    RunWorkflow: ofHost,
    CancelWorkflow: ofHost,
    GetWorkflowRun: looks(host()),
    ListWorkflowRuns: looks(host('parent')),
    ExplainWorkflow: looks(host()),
    ReadStepOutput: looks(host()),
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
    GetToken: looks(fleet, admin),
    ListTokens: looks(fleet, admin),
    DeleteToken: ofFleet,
    EndSessions: ofFleet,
    WhoAmI: looks(self),
  }),
  // Join tokens and registered keys are its own proofs.
  ...under(agent.EnrolmentService, {
    IssueCertificate: asks(open, Role.UNSPECIFIED),
  }),
  ...under(Health, {
    Check: looks(open, Role.UNSPECIFIED),
    List: looks(open, Role.UNSPECIFIED),
    Watch: looks(open, Role.UNSPECIFIED),
  }),
  ...under(ServerReflection, {
    ServerReflectionInfo: looks(self),
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
 * The methods that a caller's role and scope carry, by path, sorted. Of one that asks for more by
 * what a request says, that more is not counted.
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

/** One row for each method, by its name: one that is missing does not compile (1). */
type Rows<S extends DescService> = {
  readonly [Method in keyof S['method'] & string as Capitalize<Method>]: Row;
};

function under<S extends DescService>(service: S, rows: Rows<S>): Readonly<Record<string, Row>> {
  return Object.fromEntries(
    Object.entries<Row>(rows).map(([method, row]) => [`${service.typeName}/${method}`, row]),
  );
}
