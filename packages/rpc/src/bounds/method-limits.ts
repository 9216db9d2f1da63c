/**
 * How large the messages of each method may be, whatever carries them. A method without a row does
 * not compile; a service without a table is not served.
 */
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import {
  AbandonedResourceService,
  AccessService,
  AuditService,
  AuthorityService,
  agent,
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
  runner,
  SecretsService,
  ServerReflection,
  TemplateService,
  WorkflowBatchService,
  WorkflowService,
} from '@rackwright/messages';
import type { SurveyLimits } from './survey.ts';

/** What a caller may send in one message. */
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
  /** What holds a list for the whole fleet. */
  list: { bytesMax: 1_024 * kibibyte, elementsMax: 40_000, ...kept },
  /** From a peer that has shown who it is: inventories, evidence, thousands of its operations. */
  session: { bytesMax: 4_096 * kibibyte, elementsMax: 120_000, ...kept },
} as const satisfies Readonly<Record<string, MessageLimits>>;

type LimitClass = keyof typeof classes;

/** A stream's first message may come from somebody else than its later ones. */
type Row = LimitClass | { readonly first: LimitClass; readonly later: LimitClass };

type Table<S extends DescService> = { readonly [K in keyof S['method']]: Row };

interface ServiceLimits {
  readonly service: DescService;
  readonly rows: Readonly<Record<string, Row>>;
}

function table<S extends DescService>(service: S, rows: Table<S>): ServiceLimits {
  return { service, rows };
}

const tables: readonly ServiceLimits[] = [
  table(Health, {
    check: 'open',
    list: 'open',
    watch: 'open',
  }),
  table(ServerReflection, {
    serverReflectionInfo: 'open',
  }),
  table(agent.EnrolmentService, {
    issueCertificate: 'open',
  }),
  table(agent.AgentService, {
    session: 'session',
  }),
  table(runner.RunnerService, {
    session: { first: 'open', later: 'session' },
  }),
  table(AbandonedResourceService, {
    getAbandonedResource: 'small',
    listAbandonedResources: 'small',
    resolveAbandonedResource: 'small',
  }),
  table(AccessService, {
    createToken: 'spec',
    getToken: 'small',
    listTokens: 'small',
    deleteToken: 'small',
    whoAmI: 'small',
  }),
  table(AuditService, {
    listAuditRecords: 'small',
  }),
  table(AuthorityService, {
    getAuthorities: 'small',
    rotateAuthority: 'small',
    advanceAuthority: 'small',
  }),
  table(CredentialService, {
    createCredential: 'spec',
    getCredential: 'small',
    listCredentials: 'small',
    updateCredential: 'spec',
    deleteCredential: 'small',
  }),
  table(DiscoveryService, {
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
  table(ErasureCertificateService, {
    getErasureCertificate: 'small',
    listErasureCertificates: 'small',
    getTrust: 'small',
    getErasureDocument: 'small',
    listErasureDocuments: 'small',
  }),
  table(EventService, {
    watchEvents: 'small',
    listEvents: 'small',
  }),
  table(EventSinkService, {
    createEventSink: 'spec',
    getEventSink: 'small',
    listEventSinks: 'small',
    updateEventSink: 'spec',
    deleteEventSink: 'small',
    listDeadLetters: 'small',
    replayDeadLetters: 'list',
    dropDeadLetters: 'list',
  }),
  table(FleetService, {
    getFleet: 'small',
    updateFleet: 'list',
    freezeFleet: 'small',
    thawFleet: 'small',
  }),
  table(HistoryService, {
    diffHost: 'small',
    getHostRun: 'small',
    listHostRuns: 'small',
    explainRun: 'small',
  }),
  table(HostService, {
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
    readHostBmc: 'small',
    watchHostConsole: 'small',
  }),
  table(PlanService, {
    planRun: 'spec',
    getPlan: 'small',
    startPlan: 'small',
  }),
  table(PoolService, {
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
  table(RackService, {
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
  table(SecretsService, {
    getSecretsKey: 'small',
    rotateSecretsKey: 'spec',
  }),
  table(TemplateService, {
    createTemplate: 'spec',
    getTemplate: 'small',
    listTemplates: 'small',
    updateTemplate: 'spec',
    deleteTemplate: 'small',
  }),
  table(WorkflowBatchService, {
    createWorkflowBatch: 'list',
    getWorkflowBatch: 'small',
    listWorkflowBatches: 'small',
    listWorkflowBatchHosts: 'small',
    cancelWorkflowBatch: 'small',
    deleteWorkflowBatch: 'small',
  }),
  table(WorkflowService, {
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
];

/** Of a method's first message and of those behind it. */
export interface MethodLimits {
  readonly first: MessageLimits;
  readonly later: MessageLimits;
}

/** Throws when a service has no table: none of its methods may be served. */
export function limitsOfMethod({ parent, localName, name }: DescMethod): MethodLimits {
  const found = tables.find(({ service }) => service.typeName === parent.typeName);
  const row = found?.rows[localName];
  if (row === undefined)
    throw new Error(`${parent.typeName}.${name} has no limits of its messages`);
  const { first, later } = typeof row === 'string' ? { first: row, later: row } : row;
  return { first: classes[first], later: classes[later] };
}
