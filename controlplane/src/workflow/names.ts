/** Names of workflows, their runs and batches, and the keys of their records. Pure. */
import {
  asBatchId,
  asTemplateId,
  asWorkflowRunNumber,
  type BatchId,
  type HostId,
  type HostUid,
  isChosenId,
  type RunNumber,
  type TemplateId,
  type WorkflowRunNumber,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';

/** A workflow is named by its host and its template. */
export interface WorkflowId {
  readonly hostId: HostId;
  readonly templateId: TemplateId;
}

const segment = '[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?';
const workflowShape = new RegExp(`^hosts/(${segment})/workflows/(${segment})$`);
const runShape = new RegExp(`^hosts/(${segment})/workflows/(${segment})/runs/([1-9]\\d{0,17})$`);
const batchShape = new RegExp(`^workflowBatches/(${segment})$`);

/** "hosts/HOST/workflows/TEMPLATE" */
export function workflowName({ hostId, templateId }: WorkflowId): string {
  return `hosts/${hostId}/workflows/${templateId}`;
}

/** "hosts/HOST/workflows/TEMPLATE/runs/NUMBER" */
export function workflowRunName(id: WorkflowId, number: WorkflowRunNumber): string {
  return `${workflowName(id)}/runs/${number}`;
}

/** Undefined when the text names no workflow. */
export function parseWorkflowName(name: string): WorkflowId | undefined {
  const [, hostId, templateId] = workflowShape.exec(name) ?? [];
  if (hostId === undefined || templateId === undefined) return undefined;
  return { hostId, templateId: asTemplateId(templateId) };
}

/** Undefined when the text names no run of a workflow. */
export function parseWorkflowRunName(
  name: string,
): (WorkflowId & { readonly number: WorkflowRunNumber }) | undefined {
  const [, hostId, templateId, number] = runShape.exec(name) ?? [];
  if (hostId === undefined || templateId === undefined || number === undefined) return undefined;
  return {
    hostId,
    templateId: asTemplateId(templateId),
    number: asWorkflowRunNumber(BigInt(number)),
  };
}

/** The id in "workflowBatches/ID"; undefined when the text names no batch. */
export function parseBatchName(name: string): BatchId | undefined {
  const id = batchShape.exec(name)?.[1];
  return id === undefined ? undefined : asBatchId(id);
}

/** Key of a workflow's record. */
export function workflowKey({ hostId, templateId }: WorkflowId): string {
  return storeKey('workflows', hostId, templateId);
}

/** The workflow whose record a key is for; undefined for other keys. */
export function workflowOfKey(key: string): WorkflowId | undefined {
  const [collection, hostId, templateId = '', ...rest] = key.split('.');
  if (collection !== 'workflows' || hostId === undefined || rest.length > 0) return undefined;
  return isChosenId(templateId) ? { hostId, templateId: asTemplateId(templateId) } : undefined;
}

/** Key of a batch's record. */
export function batchKey(batchId: BatchId): string {
  return storeKey('workflowBatches', batchId);
}

/** The batch whose record a key is for; undefined for other keys. */
export function batchOfKey(key: string): BatchId | undefined {
  const [collection, batchId = '', ...rest] = key.split('.');
  if (collection !== 'workflowBatches' || rest.length > 0) return undefined;
  return isChosenId(batchId) ? asBatchId(batchId) : undefined;
}

/** Key of a run of a host that has ended. */
export function finishedRunKey(hostUid: HostUid, number: RunNumber): string {
  return storeKey('runs', hostUid, String(number));
}
