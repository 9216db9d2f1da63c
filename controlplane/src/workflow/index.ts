/** Workflows: templates bound to hosts; others import from here. */
export { hostsWithSlot, isBatchEnded, shownBatch } from './batch-rules.ts';
export type { Batches, BatchSnapshot } from './batches.ts';
export { cancelWorkflow, deleteWorkflow } from './endings.ts';
export { explainWorkflow } from './explain.ts';
export { awaitedSlots, explainAwaited, withAwaitedSlots } from './explain-slot.ts';
export type { ReconciledWorkflow, Workflows, WorkflowsDependencies } from './loop.ts';
export {
  batchKey,
  parseBatchName,
  parseWorkflowName,
  parseWorkflowRunName,
  type WorkflowId,
  workflowKey,
  workflowName,
  workflowOfKey,
} from './names.ts';
export { createWorkflowParts, type WorkflowParts } from './parts.ts';
export { type NextRun, nextRun, startPlanned, wasStartedBy } from './planned.ts';
export { existingWorkflow, type RequestDependencies } from './read.ts';
export { draftOf, keptRuns, latestRun, withRequester } from './record.ts';
export { renderRun, type TemplateText } from './rendering.ts';
export { changeWorkflow, createWorkflow, runWorkflow } from './requests.ts';
export { defaultSweepTiming, type SweepTiming } from './sweep-rules.ts';
export { presentRunOf, presentWorkflow } from './view.ts';
export { createWebhookCaller } from './webhook.ts';
