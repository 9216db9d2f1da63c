/** Filter and order fields of workflows and of their runs. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  FailureTypeSchema,
  type Workflow,
  type WorkflowRun,
  WorkflowRunStateSchema,
} from '@rackwright/messages';
import type { FilterFields } from '../../filter/index.ts';

/** The fields of a run, for `ListWorkflowRunsRequest.filter`. */
export const workflowRunFields: FilterFields<WorkflowRun> = {
  number: { kind: 'number', of: ({ number }) => Number(number) },
  state: { kind: 'choice', of: ({ state }) => state, choices: WorkflowRunStateSchema },
  failure: {
    kind: 'choice',
    of: ({ error }) => error?.type ?? 0,
    choices: FailureTypeSchema,
    path: 'error.type',
  },
  waiting: { kind: 'text', of: ({ waiting }) => waiting?.reason ?? '' },
  requested_by: { kind: 'text', of: ({ requestedBy }) => requestedBy },
  create_time: { kind: 'time', of: ({ createTime }) => createTime && timestampMs(createTime) },
  start_time: { kind: 'time', of: ({ startTime }) => startTime && timestampMs(startTime) },
  end_time: { kind: 'time', of: ({ endTime }) => endTime && timestampMs(endTime) },
};

/** The fields of a workflow with its latest run, for `ListWorkflowsRequest.filter`. */
export const workflowFields: FilterFields<Workflow> = {
  name: { kind: 'text', of: ({ name }) => name },
  uid: { kind: 'text', of: ({ uid }) => uid },
  disabled: {
    kind: 'flag',
    of: ({ spec }) => spec?.disabled === true,
    path: 'spec.disabled',
  },
  state: {
    kind: 'choice',
    of: ({ status }) => status?.run?.state ?? 0,
    choices: WorkflowRunStateSchema,
    path: 'status.run.state',
  },
  failure: {
    kind: 'choice',
    of: ({ status }) => status?.run?.error?.type ?? 0,
    choices: FailureTypeSchema,
    path: 'status.run.error.type',
  },
  waiting: {
    kind: 'text',
    of: ({ status }) => status?.run?.waiting?.reason ?? '',
    path: 'status.run.waiting.reason',
  },
  create_time: { kind: 'time', of: ({ createTime }) => createTime && timestampMs(createTime) },
  update_time: { kind: 'time', of: ({ updateTime }) => updateTime && timestampMs(updateTime) },
};
