/** Lists of workflows, and of the stored runs of one. */
import { toBinary } from '@bufbuild/protobuf';
import {
  type HostId,
  invalidArgument,
  type ListWorkflowRunsRequest,
  type ListWorkflowsRequest,
  notFound,
  type Workflow,
  WorkflowRunSchema,
  WorkflowSchema,
  store as wire,
} from '@rackwright/messages';
import { type Entry, storeKey } from '@rackwright/store';
import { filterOf, pageOfItems } from '../../call/filtering.ts';
import { nameProblem, parseName } from '../../call/names.ts';
import { listPage } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { formatPosition } from '../../call/position.ts';
import { quote, Violations } from '../../call/violations.ts';
import { orUnavailable, readableRecordOf, readShared } from '../../records/index.ts';
import {
  existingWorkflow,
  keptRuns,
  presentRunOf,
  presentWorkflow,
  workflowOfKey,
} from '../index.ts';
import { workflowFields, workflowRunFields } from './workflow-fields.ts';
import { requireWorkflowName } from './workflow-spec.ts';

/** Handles one ListWorkflows. */
export async function listWorkflows(deps: RpcDependencies, request: ListWorkflowsRequest) {
  const { store } = deps;
  const { parent, template, filter, orderBy } = request;
  const templateId = checkedTemplate(request);
  const { matches } = filterOf(workflowFields, filter);
  const hostId = parseName('hosts', parent);
  const prefix = hostId === undefined ? 'workflows' : storeKey('workflows', hostId);
  const hostOf = hostReader(deps);
  if (hostId !== undefined && (await hostOf(hostId)) === undefined) throw notFound(parent);
  const read = async (entry: Entry): Promise<Workflow | undefined> => {
    const id = workflowOfKey(entry.key);
    if (id === undefined) return undefined;
    if (templateId !== undefined && id.templateId !== templateId) return undefined;
    const record = readableRecordOf(deps, wire.WorkflowRecordSchema, entry);
    if (record === undefined) return undefined;
    const host = await hostOf(id.hostId);
    if (host?.host?.uid !== record.workflow?.status?.hostUid) return undefined;
    const workflow = await presentWorkflow(deps, id, record, host);
    workflow.etag = formatPosition(store, entry.revision);
    return matches(workflow) ? workflow : undefined;
  };
  if (orderBy === '') {
    const bound =
      filter === '' ? `${parent} ${template}` : JSON.stringify([prefix, template, filter]);
    const isListed = (key: string) => workflowOfKey(key) !== undefined;
    const page = await listPage(store, prefix, request, bound, read, isListed);
    return { workflows: [...page.items], nextPageToken: page.nextPageToken };
  }
  if (hostId === undefined) {
    const description = 'sorts the workflows of one host; name it as parent, or leave this out';
    throw invalidArgument([{ field: 'order_by', description }]);
  }
  const { entries } = await orUnavailable(store.list(prefix));
  const found = await Promise.all(entries.map(read));
  const items = [found.flatMap((each) => each ?? [])];
  const bytesOf = (each: Workflow) => toBinary(WorkflowSchema, each).byteLength;
  const nameOf = ({ name }: Workflow) => name;
  const listed = { fields: workflowFields, items, nameOf, bytesOf, usually: 'name' };
  const page = await pageOfItems(store, listed, request, `${parent} ${template}`);
  return { workflows: [...page.items], nextPageToken: page.nextPageToken };
}

/** The id of the template in the list's filter. Throws `invalidArgument`. */
function checkedTemplate({ parent, template }: ListWorkflowsRequest): string | undefined {
  const violations = new Violations();
  if (parent !== 'hosts/-') violations.addIf('parent', nameProblem('hosts', parent));
  const templateId = /^templates\/([a-z][a-z0-9-]{0,62})$/.exec(template)?.[1];
  if (template !== '' && templateId === undefined) {
    const shape = 'it must name a template, as in "templates/set-clock"';
    violations.add('template', `is ${quote(template)}; ${shape}`);
  }
  violations.throwIfAny();
  return templateId;
}

/** Reads each host once, when the list reaches a workflow of it. */
function hostReader({ store }: RpcDependencies) {
  const known = new Map<HostId, wire.HostRecord | undefined>();
  return async (hostId: HostId): Promise<wire.HostRecord | undefined> => {
    if (known.has(hostId)) return known.get(hostId);
    const kept = await readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    known.set(hostId, kept?.record);
    return kept?.record;
  };
}

/** Handles one ListWorkflowRuns: newest first by default. */
export async function listWorkflowRuns(deps: RpcDependencies, request: ListWorkflowRunsRequest) {
  const { store } = deps;
  const { parent } = request;
  const { record, host } = await existingWorkflow(deps, requireWorkflowName(parent, 'parent'));
  const items = [keptRuns(record)];
  const page = await pageOfItems(
    store,
    {
      ...{ fields: workflowRunFields, items, usually: 'number desc' },
      nameOf: ({ number }) => String(number),
      bytesOf: (run) => toBinary(WorkflowRunSchema, run).byteLength,
    },
    request,
    parent,
  );
  const runs = await Promise.all(page.items.map((run) => presentRunOf(store, run, host)));
  return { runs, nextPageToken: page.nextPageToken };
}
