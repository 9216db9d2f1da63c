/**
 * How large the messages of each method may be, over every transport. A method without a row does
 * not compile; a service without a table is not served.
 */
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import type {
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
  Health,
  HistoryService,
  HostService,
  PlanService,
  PoolService,
  RackService,
  SecretsService,
  ServerReflection,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import type * as runner from '@rackwright/messages/runner';
import type { SurveyLimits } from './survey.ts';

/** The limits of one message of a caller. */
export interface MessageLimits extends SurveyLimits {
  /** Whether fields that the schema does not name are handed on: a newer peer may send some. */
  readonly unknownFields: 'kept' | 'skipped';
}

const kibibyte = 1024;
const kept = { unknownFields: 'kept', unknownFieldsMax: 256 } as const;

const classes = {
  /** Nobody knows the caller yet. Its unknown fields cost nothing: they are passed over. */
  open: {
    ...{ bytesMax: 16 * kibibyte, elementsMax: 1_000 },
    ...{ unknownFields: 'skipped', unknownFieldsMax: 16 * kibibyte },
  },
  /** Names, a mask, a page, a reason. */
  small: { bytesMax: 16 * kibibyte, elementsMax: 1_000, ...kept },
  /** A spec: 64 KiB of text of its owner's is the longest field (templates, first-boot data). */
  spec: { bytesMax: 256 * kibibyte, elementsMax: 10_000, ...kept },
  /** For a message with a list of the whole fleet. */
  list: { bytesMax: 1_024 * kibibyte, elementsMax: 40_000, ...kept },
  /** From an authenticated peer: inventories, evidence, thousands of its operations. */
  session: { bytesMax: 4_096 * kibibyte, elementsMax: 120_000, ...kept },
} as const satisfies Readonly<Record<string, MessageLimits>>;

type LimitClass = keyof typeof classes;

/** A stream's first message may have another sender than its later ones. */
type Row = LimitClass | { readonly first: LimitClass; readonly later: LimitClass };

type Table<S extends DescService> = { readonly [K in keyof S['method']]: Row };

type Rows = Readonly<Record<string, Row>>;

/** The service by its name alone: an import of its descriptor would read those of all services. */
function table<S extends DescService>(name: string, rows: Table<S>): readonly [string, Rows] {
  return [name, rows];
}

const tables: ReadonlyMap<string, Rows> = new Map([
  table<typeof Health>('grpc.health.v1.Health', {
    check: 'open',
    list: 'open',
    watch: 'open',
  }),
  table<typeof ServerReflection>('grpc.reflection.v1.ServerReflection', {
    serverReflectionInfo: 'open',
  }),
  table<typeof agent.EnrolmentService>('rackwright.agent.v1.EnrolmentService', {
    issueCertificate: 'open',
  }),
  table<typeof agent.AgentService>('rackwright.agent.v1.AgentService', {
    session: 'session',
  }),
  table<typeof runner.RunnerService>('rackwright.runner.v1.RunnerService', {
    session: { first: 'open', later: 'session' },
    exchange: { first: 'open', later: 'spec' },
  }),
  table<typeof AbandonedResourceService>('rackwright.v1.AbandonedResourceService', {
    getAbandonedResource: 'small',
    listAbandonedResources: 'small',
    resolveAbandonedResource: 'small',
  }),
  table<typeof AccessService>('rackwright.v1.AccessService', {
    createToken: 'spec',
    getToken: 'small',
    listTokens: 'small',
    deleteToken: 'small',
    endSessions: 'small',
    whoAmI: 'small',
  }),
  table<typeof AuditService>('rackwright.v1.AuditService', {
    listAuditRecords: 'small',
  }),
  table<typeof AuthorityService>('rackwright.v1.AuthorityService', {
    getAuthorities: 'small',
    rotateAuthority: 'small',
    advanceAuthority: 'small',
  }),
  table<typeof CredentialService>('rackwright.v1.CredentialService', {
    createCredential: 'spec',
    getCredential: 'small',
    listCredentials: 'small',
    updateCredential: 'spec',
    deleteCredential: 'small',
  }),
  table<typeof DiscoveryService>('rackwright.v1.DiscoveryService', {
    getDiscoveredMachine: 'small',
    listDiscoveredMachines: 'small',
    acceptDiscoveredMachine: 'spec',
    deleteDiscoveredMachine: 'small',
    createExpectedHost: 'spec',
    getExpectedHost: 'small',
    listExpectedHosts: 'small',
    updateExpectedHost: 'spec',
    deleteExpectedHost: 'small',
  }),
  table<typeof ErasureCertificateService>('rackwright.v1.ErasureCertificateService', {
    getErasureCertificate: 'small',
    listErasureCertificates: 'small',
    getTrust: 'small',
    getErasureDocument: 'small',
    listErasureDocuments: 'small',
  }),
  table<typeof EventService>('rackwright.v1.EventService', {
    watchEvents: 'small',
    listEvents: 'small',
  }),
  table<typeof EventSinkService>('rackwright.v1.EventSinkService', {
    createEventSink: 'spec',
    getEventSink: 'small',
    listEventSinks: 'small',
    updateEventSink: 'spec',
    deleteEventSink: 'small',
    listDeadLetters: 'small',
    replayDeadLetters: 'list',
    dropDeadLetters: 'list',
  }),
  table<typeof FleetService>('rackwright.v1.FleetService', {
    getFleet: 'small',
    updateFleet: 'list',
    freezeFleet: 'small',
    thawFleet: 'small',
  }),
  table<typeof HistoryService>('rackwright.v1.HistoryService', {
    diffHost: 'small',
    getHostRun: 'small',
    listHostRuns: 'small',
    explainRun: 'small',
  }),
  table<typeof HostService>('rackwright.v1.HostService', {
    createHost: 'spec',
    getHost: 'small',
    listHosts: 'small',
    countHosts: 'small',
    updateHost: 'spec',
    deleteHost: 'small',
    watchHosts: 'small',
    verifyHost: 'small',
    inspectHost: 'small',
    cleanHost: 'spec',
    abortRun: 'small',
    releaseHold: 'small',
    setHostPower: 'small',
    retryHost: 'small',
    serviceHost: 'spec',
    provisionHost: 'spec',
    reimageHost: 'spec',
    releaseHost: 'small',
    rescueHost: 'spec',
    adoptHost: 'spec',
    claimHost: 'small',
    unclaimHost: 'small',
    holdHost: 'small',
    resumeRun: 'small',
    skipStep: 'small',
    cancelHostDeletion: 'small',
    explainHost: 'small',
    listCleanSteps: 'small',
    listHostRevisions: 'small',
    getHostInventory: 'small',
    readHostBmc: 'small',
    watchHostConsole: 'small',
  }),
  table<typeof PlanService>('rackwright.v1.PlanService', {
    planRun: 'spec',
    getPlan: 'small',
    startPlan: 'small',
  }),
  table<typeof PoolService>('rackwright.v1.PoolService', {
    createPool: 'spec',
    getPool: 'small',
    listPools: 'small',
    updatePool: 'spec',
    deletePool: 'small',
    watchPools: 'small',
    pausePool: 'small',
    resumePool: 'small',
    approvePool: 'small',
    listPoolHosts: 'small',
    listDeployHistory: 'small',
    planRollout: 'spec',
    explainPool: 'small',
  }),
  table<typeof RackService>('rackwright.v1.RackService', {
    createRack: 'spec',
    getRack: 'small',
    listRacks: 'small',
    updateRack: 'spec',
    deleteRack: 'small',
    watchRacks: 'small',
    explainRack: 'small',
    createJoinToken: 'small',
    revokeAgent: 'small',
    freezeRack: 'small',
    thawRack: 'small',
    acceptRestoredStore: 'small',
    prefetchImage: 'small',
    listPrefetchedImages: 'small',
    dropPrefetchedImage: 'small',
  }),
  table<typeof SecretsService>('rackwright.v1.SecretsService', {
    getSecretsKey: 'small',
    rotateSecretsKey: 'spec',
  }),
  table<typeof TemplateService>('rackwright.v1.TemplateService', {
    createTemplate: 'spec',
    getTemplate: 'small',
    listTemplates: 'small',
    updateTemplate: 'spec',
    deleteTemplate: 'small',
  }),
  table<typeof WorkflowBatchService>('rackwright.v1.WorkflowBatchService', {
    createWorkflowBatch: 'list',
    getWorkflowBatch: 'small',
    listWorkflowBatches: 'small',
    listWorkflowBatchHosts: 'small',
    cancelWorkflowBatch: 'small',
    deleteWorkflowBatch: 'small',
  }),
  table<typeof WorkflowService>('rackwright.v1.WorkflowService', {
    createWorkflow: 'spec',
    getWorkflow: 'small',
    listWorkflows: 'small',
    updateWorkflow: 'spec',
    deleteWorkflow: 'small',
    runWorkflow: 'spec',
    cancelWorkflow: 'small',
    getWorkflowRun: 'small',
    listWorkflowRuns: 'small',
    explainWorkflow: 'small',
    readStepOutput: 'small',
  }),
]);

/** The limits of a method's first message and of later ones. */
export interface MethodLimits {
  readonly first: MessageLimits;
  readonly later: MessageLimits;
}

/** Throws when a service has no table: none of its methods may be served. */
export function limitsOfMethod({ parent, localName, name }: DescMethod): MethodLimits {
  const row = tables.get(parent.typeName)?.[localName];
  if (row === undefined)
    throw new Error(`${parent.typeName}.${name} has no limits of its messages`);
  const { first, later } = typeof row === 'string' ? { first: row, later: row } : row;
  return { first: classes[first], later: classes[later] };
}
