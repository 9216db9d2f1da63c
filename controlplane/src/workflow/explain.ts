/**
 * Explains what a workflow's latest run waits for, or how it ended; for a run on a host, the host's
 * own explanation is used.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  type Explanation,
  ExplanationSchema,
  failureWord,
  type HostId,
  NotRunnableKind,
  type PendingWait,
  pendingWaitOf,
  type WorkflowRun,
  WorkflowRunState,
  type store as wire,
} from '@rackwright/messages';
import { explainEndedRun, howItEnded, type UsualTimes } from '../host/index.ts';
import { type WorkflowId, workflowName } from './names.ts';
import { latestRun } from './record.ts';
import { readTemplate } from './templates/index.ts';
import { presentRunOf, presentWorkflow, type ViewSource } from './view.ts';

/** The inputs of an explanation. */
export interface ExplainSource extends ViewSource {
  readonly hosts: {
    explain(hostId: HostId): Promise<Explanation | undefined>;
    usualOf(hostId: HostId): Promise<UsualTimes>;
  };
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
      return explainPending(id, run, await hasTemplate(source, id));
    case WorkflowRunState.RUNNING: {
      const ofHost = await source.hosts.explain(id.hostId);
      if (ofHost === undefined) return explainEnded(id, run, host);
      const shown = clone(ExplanationSchema, ofHost);
      shown.subject = subject;
      shown.headline = `run ${run.number}: ${ofHost.headline}`;
      return shown;
    }
    default:
      return explainEnded(id, run, host, await source.hosts.usualOf(id.hostId));
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
  const { notRunnable = '', notRunnableKind: not = NotRunnableKind.UNSPECIFIED } = status ?? {};
  const isRunnable = not === NotRunnableKind.UNSPECIFIED;
  const isDisabled = spec?.disabled === true;
  return create(ExplanationSchema, {
    subject: workflowName(id),
    headline: isDisabled ? 'disabled; no run of it is kept' : 'no run of it is kept',
    causes: isRunnable ? [] : [{ text: notRunnable }],
    unblock: [
      ...(isDisabled ? [`enable it: rackwright workflow enable ${ids}`] : []),
      ...(isRunnable ? [] : templateAdvice(id, not !== NotRunnableKind.NO_TEMPLATE)),
      ...(isRunnable ? [`run it: rackwright workflow run ${ids}`] : []),
    ],
  });
}

async function hasTemplate({ store }: ViewSource, { templateId }: WorkflowId): Promise<boolean> {
  return (await readTemplate(store, templateId)) !== undefined;
}

function explainPending(id: WorkflowId, run: WorkflowRun, templateThere: boolean): Explanation {
  const { waiting, deadline } = run;
  const pending = textOfPending(waiting, id, templateThere);
  return create(ExplanationSchema, {
    subject: workflowName(id),
    headline: `run ${run.number} is pending: it has been accepted and has not started`,
    causes: waiting === undefined ? [] : [causeOf(waiting.message, waiting.since)],
    blocker: pending.blocker,
    ...(waiting?.since === undefined ? {} : { since: waiting.since }),
    ...(deadline === undefined ? {} : { deadline }),
    unblock: [...pending.unblock],
    lastEvidence: `asked for by ${run.requestedBy}`,
  });
}

function causeOf(text: string, since: NonNullable<WorkflowRun['waiting']>['since']) {
  return since === undefined ? { text } : { text, since };
}

interface PendingText {
  readonly blocker: string;
  readonly unblock: readonly string[];
}

type PendingCell = (id: WorkflowId, templateThere: boolean) => PendingText;

/** All possible waits of a run before a host has it. */
const pendingCells: Readonly<Record<PendingWait, PendingCell>> = {
  template: (id, templateThere) => ({
    blocker: 'its template',
    unblock: [...templateAdvice(id, templateThere), cancelAdvice(id)],
  }),
  disabled: (id) => ({
    blocker: 'its switch',
    unblock: [
      `enable it: rackwright workflow enable ${id.hostId} ${id.templateId}`,
      cancelAdvice(id),
    ],
  }),
  run: (id) => ({
    blocker: 'the run that holds the host',
    unblock: [`see what holds the host: rackwright host explain ${id.hostId}`, cancelAdvice(id)],
  }),
  host: (id) => ({
    blocker: 'the host, which refuses it now',
    unblock: [`do what the host asks for: rackwright host explain ${id.hostId}`, cancelAdvice(id)],
  }),
};

function textOfPending(
  waiting: WorkflowRun['waiting'],
  id: WorkflowId,
  templateThere: boolean,
): PendingText {
  const wait = pendingWaitOf(waiting);
  if (wait !== undefined) return pendingCells[wait](id, templateThere);
  // An unknown wait, such as of another version: only its own word is shown.
  return { blocker: waiting?.reason ?? '', unblock: ['nothing: it starts by itself'] };
}

function templateAdvice({ hostId, templateId }: WorkflowId, templateThere: boolean): string[] {
  if (!templateThere) return [`make the template: rackwright template create ${templateId} FILE`];
  return [
    `correct the template: rackwright template update ${templateId} FILE`,
    `or what it is given: rackwright workflow update ${hostId} ${templateId} --var NAME=VALUE`,
  ];
}

function cancelAdvice({ hostId, templateId }: WorkflowId): string {
  return `or cancel it: rackwright workflow cancel ${hostId} ${templateId}`;
}

/** The host's run explains the end; for a run that no host has had, its own text is used. */
function explainEnded(
  id: WorkflowId,
  run: WorkflowRun,
  host: wire.HostRecord,
  usual?: UsualTimes,
): Explanation {
  const { error } = run;
  const carrier = run.run !== undefined && run.run.steps.length > 0 ? run.run : undefined;
  const texts = error === undefined ? [] : [error.message, error.detail].filter((each) => each);
  const type = error === undefined ? '' : `: ${failureWord(error.type)}`;
  const ownText = `${endings[run.state] ?? 'ended'}${type}`;
  const again = `run it again: rackwright workflow run ${id.hostId} ${id.templateId}`;
  const shown =
    carrier === undefined
      ? create(ExplanationSchema, { causes: texts.map((text) => ({ text })) })
      : explainEndedRun(host, carrier, usual);
  shown.subject = workflowName(id);
  shown.headline = `run ${run.number} ${carrier === undefined ? ownText : howItEnded(carrier)}`;
  if (run.endTime !== undefined) shown.since = run.endTime;
  if (run.state === WorkflowRunState.SUCCEEDED) shown.unblock = [];
  else if (shown.unblock.length === 0) shown.unblock = [again];
  return shown;
}

const endings: Readonly<Record<number, string>> = {
  [WorkflowRunState.SUCCEEDED]: 'succeeded',
  [WorkflowRunState.FAILED]: 'failed',
  [WorkflowRunState.TIMED_OUT]: 'timed out',
  [WorkflowRunState.CANCELLED]: 'was cancelled',
};
