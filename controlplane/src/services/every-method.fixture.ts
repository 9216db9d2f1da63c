/** A call of each method that the operators' port serves, by its name: for tests of all of them. */
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { ApiFailure } from '@rackwright/messages';
import { type Channel, createClient } from '@rackwright/rpc';
import { trustedSignIn } from '../access/index.ts';
import { type Names, type Side, specOf } from './access.fixture.ts';
import { createOperatorServices } from './index.ts';

/** The port's services, as the program itself assembles them. */
const { services } = createOperatorServices({} as never, trustedSignIn);
export const methods = services.flatMap(({ service }) => service.methods);
export const pathOf = (method: DescMethod) => `${method.parent.typeName}/${method.name}`;

/** A complete request that has no effect once it is permitted. */
export function requestOf(
  method: DescMethod,
  side: Side,
  own: Names,
): Readonly<Record<string, unknown>> {
  const has = (field: string) => method.input.fields.some(({ name }) => name === field);
  return {
    ...(has('request_id') ? { requestId: 'no id!' } : {}),
    ...(has('etag') ? { etag: 'elsewhere.1' } : {}),
    ...(has('validate_only') ? { validateOnly: true } : {}),
    ...named(method, side, own),
  };
}

function named(method: DescMethod, side: Side, own: Names): Readonly<Record<string, unknown>> {
  const special = specials(own, side)[`${method.parent.name}.${method.name}`];
  if (special !== undefined) return special;
  const name = byService(own)[method.parent.name];
  return name !== undefined && method.input.field['name'] !== undefined ? { name } : {};
}

function byService(own: Names): Readonly<Record<string, string>> {
  return {
    HostService: own.host,
    RackService: own.rack,
    CredentialService: own.credential,
    ErasureCertificateService: own.certificate,
    AbandonedResourceService: own.abandoned,
    TemplateService: 'templates/rackwright-diagnose',
    WorkflowService: own.workflow,
    WorkflowBatchService: own.batch,
    AccessService: 'tokens/viewer-everything',
    PlanService: own.plan,
    PoolService: own.imagePool,
  };
}

function specials(own: Names, side: Side): Readonly<Record<string, Record<string, unknown>>> {
  const host = { spec: specOf(side, 5), labels: { pool: own.pool } };
  const line = { spec: { ...specOf(side, 6), bootMacs: [] }, labels: { pool: own.pool } };
  return {
    'HostService.CreateHost': { hostId: 'other', host },
    'HostService.UpdateHost': { host: { name: own.host }, updateMask: { paths: ['labels'] } },
    'RackService.UpdateRack': { rack: { name: own.rack } },
    'RackService.CreateJoinToken': { rack: own.rack },
    'ErasureCertificateService.GetErasureDocument': { name: own.document },
    'CredentialService.UpdateCredential': { credential: { name: own.credential } },
    'DiscoveryService.GetDiscoveredMachine': { name: own.machine },
    'DiscoveryService.AcceptDiscoveredMachine': { name: own.machine, hostId: 'other' },
    'DiscoveryService.DeleteDiscoveredMachine': { name: own.machine },
    'DiscoveryService.CreateExpectedHost': { expectedHostId: 'other', expectedHost: line },
    'DiscoveryService.GetExpectedHost': { name: own.line },
    'DiscoveryService.UpdateExpectedHost': {
      expectedHost: { name: own.line },
      updateMask: { paths: ['match'] },
    },
    'DiscoveryService.DeleteExpectedHost': { name: own.line },
    'EventService.ListEvents': { subject: own.host },
    'HistoryService.DiffHost': { name: own.host, fromTime: { seconds: 4_000_000_000n } },
    'HistoryService.GetHostRun': { name: `${own.host}/runs/1` },
    'HistoryService.ListHostRuns': { parent: own.host },
    'HistoryService.ExplainRun': { name: `${own.host}/runs/1` },
    'PlanService.PlanRun': {
      parent: own.host,
      run: { case: 'clean', value: { steps: [{ step: '!' }] } },
    },
    'PoolService.CreatePool': { poolId: 'other', pool: { spec: { hosts: { names: [own.host] } } } },
    'PoolService.UpdatePool': { pool: { name: own.imagePool } },
    'PoolService.ListPoolHosts': { parent: own.imagePool },
    'PoolService.ListDeployHistory': { parent: own.imagePool },
    'WorkflowService.CreateWorkflow': { parent: own.host, workflowId: 'rackwright-diagnose' },
    'WorkflowService.UpdateWorkflow': { workflow: { name: own.workflow } },
    'WorkflowService.ListWorkflows': { parent: own.host },
    'WorkflowService.ListWorkflowRuns': { parent: own.workflow },
    'WorkflowBatchService.ListWorkflowBatchHosts': { parent: own.batch },
    'WorkflowService.GetWorkflowRun': { name: `${own.workflow}/runs/1` },
    'WorkflowService.ReadStepOutput': { name: `${own.workflow}/runs/1` },
    'WorkflowBatchService.CreateWorkflowBatch': {
      workflowBatchId: 'other',
      workflowBatch: {
        spec: { template: 'templates/rackwright-diagnose', hosts: { rack: own.rack } },
      },
    },
  };
}

export interface Answer {
  readonly reason: string;
  /** All response texts. */
  readonly text: string;
}

export async function callOf(
  channel: Channel,
  method: DescMethod,
  request: Readonly<Record<string, unknown>>,
  token: string | undefined,
): Promise<Answer> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const client = clientOf(method.parent, channel, headers);
  const plain = (_key: string, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value;
  try {
    const told = await client(method, request);
    return { reason: '', text: JSON.stringify(told, plain) };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { reason: error.error.reason, text: JSON.stringify(error.error, plain) };
  }
}

/** Responses of a stream, up to the end of the present state. */
function clientOf(
  service: DescService,
  channel: Channel,
  headers: Readonly<Record<string, string>>,
) {
  const client: object = createClient(service, channel, { headers });
  return async (method: DescMethod, request: unknown): Promise<unknown> => {
    const start = Reflect.get(client, method.localName) as (request: unknown) => unknown;
    if (method.methodKind === 'unary') return start(request);
    const input = method.methodKind === 'bidi_streaming' ? once(request) : request;
    const told: unknown[] = [];
    const items = start(input) as AsyncIterable<{ readonly kind?: number }>;
    for await (const item of items) {
      told.push(item);
      if (told.length > streamedMax || isBegun(method, item) || !('position' in item)) break;
    }
    return told;
  };
}

const streamedMax = 100;

/** Whether a watch has sent the present state and waits for changes. */
function isBegun({ output }: DescMethod, { kind }: { readonly kind?: number }): boolean {
  const values = output.field['kind']?.enum?.values ?? [];
  const name = values.find(({ number }) => number === kind)?.localName;
  return name === 'SYNCED' || name === 'STARTED';
}

async function* once(request: unknown) {
  yield request;
}
