/** Filter and order fields of a host's runs. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  FailureTypeSchema,
  type Run,
  RunKindSchema,
  RunOutcomeSchema,
  RunPhase,
  RunPhaseSchema,
} from '@rackwright/messages';
import type { FilterFields } from '../filter/index.ts';

/** The fields of a run, for `ListHostRunsRequest.filter`. */
export const runFields: FilterFields<Run> = {
  number: { kind: 'number', of: ({ number }) => Number(number) },
  kind: { kind: 'choice', of: ({ kind }) => kind, choices: RunKindSchema },
  phase: { kind: 'choice', of: ({ phase }) => phase, choices: RunPhaseSchema },
  outcome: { kind: 'choice', of: ({ outcome }) => outcome, choices: RunOutcomeSchema },
  failure: {
    kind: 'choice',
    of: ({ error }) => error?.type ?? 0,
    choices: FailureTypeSchema,
    path: 'error.type',
  },
  waiting: {
    kind: 'text',
    of: ({ phase, waiting }) => (phase === RunPhase.WAITING ? (waiting?.reason ?? '') : ''),
  },
  requested_by: { kind: 'text', of: ({ requestedBy }) => requestedBy },
  workflow_run: { kind: 'text', of: ({ workflowRun }) => workflowRun },
  start_time: { kind: 'time', of: ({ startTime }) => startTime && timestampMs(startTime) },
  end_time: { kind: 'time', of: ({ endTime }) => endTime && timestampMs(endTime) },
};
