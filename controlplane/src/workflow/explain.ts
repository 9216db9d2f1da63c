/**
 * Says what a workflow's latest run waits for, or how it ended; of one that a host carries, the
 * host's own explanation says it.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  type Explanation,
  ExplanationSchema,
  type WorkflowRun,
  WorkflowRunState,
  type store as wire,
} from '@rackwright/api';
import { type WorkflowId, workflowName } from './names.ts';
import { latestRun } from './record.ts';
import { presentRunOf, presentWorkflow, type ViewSource } from './view.ts';

/** What an explanation is made from. */
export interface ExplainSource extends ViewSource {
  readonly hosts: { explain(hostId: string): Promise<Explanation | undefined> };
}

export async function explainWorkflow(
  source: ExplainSource,
  id: WorkflowId,
  { record, host }: { readonly record: wire.WorkflowRecord; readonly host: wire.HostRecord },
): Promise<Explanation> {
  const latest = latestRun(record);
  const subject = workflowName(id);
  if (latest === undefined) return explainIdle(source, id, record, host);
  const run = await presentRunOf(source.store, latest, host);
  switch (run.state) {
    case WorkflowRunState.PENDING:
      return explainPending(id, run);
    case WorkflowRunState.RUNNING: {
      const ofHost = await source.hosts.explain(id.hostId);
      if (ofHost === undefined) return explainEnded(id, run);
      const told = clone(ExplanationSchema, ofHost);
      told.subject = subject;
      told.headline = `run ${run.number}: ${ofHost.headline}`;
      return told;
    }
    default:
      return explainEnded(id, run);
  }
}

async function explainIdle(
  source: ExplainSource,
  id: WorkflowId,
  record: wire.WorkflowRecord,
  host: wire.HostRecord,
): Promise<Explanation> {
  const { spec, status } = await presentWorkflow(source, id, record, host);
  const ids = `${id.hostId} ${id.templateId}`;
  const notRunnable = status?.notRunnable ?? '';
  const causes = notRunnable === '' ? [] : [{ text: notRunnable }];
  return create(ExplanationSchema, {
    subject: workflowName(id),
    headline: spec?.disabled === true ? 'disabled; no run of it is kept' : 'no run of it is kept',
    causes,
    unblock: [
      ...(spec?.disabled === true ? [`enable it: rackwright workflow enable ${ids}`] : []),
      ...(notRunnable === '' ? [] : adviceFor('template', id)),
      `run it: rackwright workflow run ${ids}`,
    ],
  });
}

function explainPending(id: WorkflowId, run: WorkflowRun): Explanation {
  const { waiting, deadline } = run;
  const reason = waiting?.reason ?? '';
  return create(ExplanationSchema, {
    subject: workflowName(id),
    headline: `run ${run.number} is pending: it has been accepted and has not started`,
    causes: waiting === undefined ? [] : [causeOf(waiting.message, waiting.since)],
    blocker: blockers[reason] ?? reason,
    ...(waiting?.since === undefined ? {} : { since: waiting.since }),
    ...(deadline === undefined ? {} : { deadline }),
    unblock: adviceFor(reason, id),
    lastEvidence: `asked for by ${run.requestedBy}`,
  });
}

function causeOf(text: string, since: NonNullable<WorkflowRun['waiting']>['since']) {
  return since === undefined ? { text } : { text, since };
}

const blockers: Readonly<Record<string, string>> = {
  template: 'its template',
  disabled: 'its switch',
  run: 'the run that holds the host',
  host: 'the host, which refuses it now',
};

function adviceFor(reason: string, { hostId, templateId }: WorkflowId): string[] {
  const ids = `${hostId} ${templateId}`;
  const cancel = `or cancel it: rackwright workflow cancel ${ids}`;
  switch (reason) {
    case 'template':
      return [
        `correct the template: rackwright template update ${templateId} -f FILE`,
        `or what it is given: rackwright workflow update ${ids} --var NAME=VALUE`,
        cancel,
      ];
    case 'disabled':
      return [`enable it: rackwright workflow enable ${ids}`, cancel];
    case 'run':
      return [`see what holds the host: rackwright host explain ${hostId}`, cancel];
    case 'host':
      return [`do what the host asks for: rackwright host explain ${hostId}`, cancel];
    default:
      return ['nothing: it starts by itself'];
  }
}

function explainEnded(id: WorkflowId, run: WorkflowRun): Explanation {
  const word = endings[run.state] ?? 'ended';
  const { error } = run;
  const texts = error === undefined ? [] : [error.message, error.detail].filter((each) => each);
  const again = `run it again: rackwright workflow run ${id.hostId} ${id.templateId}`;
  return create(ExplanationSchema, {
    subject: workflowName(id),
    headline: `run ${run.number} ${word}${error === undefined ? '' : `: ${error.type}`}`,
    causes: texts.map((text) => ({ text })),
    ...(run.endTime === undefined ? {} : { since: run.endTime }),
    unblock: run.state === WorkflowRunState.SUCCEEDED ? [] : [again],
    lastEvidence: lastStep(run),
  });
}

const endings: Readonly<Record<number, string>> = {
  [WorkflowRunState.SUCCEEDED]: 'succeeded',
  [WorkflowRunState.FAILED]: 'failed',
  [WorkflowRunState.TIMED_OUT]: 'timed out',
  [WorkflowRunState.CANCELLED]: 'was cancelled',
};

/** The last words of the step that ran last. */
function lastStep({ run }: WorkflowRun): string {
  const ran = run?.steps.findLast(({ attempt }) => attempt > 0);
  if (ran === undefined) return '';
  const said = ran.exit?.lastOutput.trim() || ran.error;
  return `${ran.title || ran.name}${said === '' ? '' : `: ${said}`}`;
}
