/** How workflows, their runs and batches are shown. */
import {
  failureWord,
  type RunStep,
  StepState,
  type Workflow,
  type WorkflowBatch,
  type WorkflowBatchHost,
  type WorkflowRun,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { enumName } from './enum-name.ts';
import type { TextColumn } from './table.ts';
import { labelText } from './text.ts';
import { ago } from './time.ts';

/** Columns of `workflow list`. */
export function workflowColumns(clock: Clock): TextColumn<Workflow>[] {
  return [
    { title: 'NAME', value: ({ name }) => name, widthMin: 20 },
    { title: 'RUN', value: ({ status }) => String(status?.run?.number ?? '') },
    { title: 'STATE', value: workflowStateText, widthMin: 12 },
    { title: 'AT', value: ({ status }) => stepText(status?.run), dropOrder: 2, widthMin: 12 },
    { title: 'SINCE', value: ({ status }) => ago(clock, sinceOf(status?.run)), dropOrder: 1 },
    { title: 'PROBLEM', value: ({ status }) => problemText(status?.run), widthMin: 10 },
  ];
}

/** Columns of `workflow runs`. */
export function runColumns(clock: Clock): TextColumn<WorkflowRun>[] {
  return [
    { title: 'RUN', value: ({ number }) => String(number) },
    { title: 'STATE', value: ({ state }) => enumName('WorkflowRunState', state) },
    { title: 'AT', value: stepText, dropOrder: 2, widthMin: 12 },
    { title: 'ASKED FOR', value: ({ createTime }) => ago(clock, createTime) },
    { title: 'ENDED', value: ({ endTime }) => ago(clock, endTime), dropOrder: 1 },
    { title: 'BY', value: ({ requestedBy }) => requestedBy, dropOrder: 3 },
    { title: 'PROBLEM', value: problemText, widthMin: 10 },
  ];
}

/** Columns of the steps of a run. */
export const stepColumns: TextColumn<RunStep>[] = [
  { title: 'STEP', value: ({ title, name }) => title || name },
  { title: 'STATE', value: ({ state }) => enumName('StepState', state) },
  { title: 'ATTEMPT', value: ({ attempt }) => (attempt === 0 ? '' : String(attempt)) },
  { title: 'EXIT', value: exitText },
  {
    title: 'SAYS',
    value: ({ skippedBecause, error, exit }) =>
      skippedBecause || error || lastLine(exit?.lastOutput ?? ''),
    widthMin: 20,
  },
];

/** Columns of the hosts of a batch. */
export const batchHostColumns: TextColumn<WorkflowBatchHost>[] = [
  { title: 'HOST', value: ({ host }) => host },
  { title: 'STATE', value: ({ state }) => enumName('WorkflowRunState', state) },
  { title: 'RUN', value: ({ run }) => run, dropOrder: 1 },
  { title: 'SAYS', value: ({ message }) => message, widthMin: 20 },
];

/** Columns of `workflow batch list`. */
export function batchColumns(clock: Clock): TextColumn<WorkflowBatch>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'TEMPLATE', value: ({ spec }) => spec?.template ?? '', dropOrder: 2 },
    { title: 'HOSTS', value: countsText, widthMin: 12 },
    { title: 'ENDED', value: ({ status }) => ago(clock, status?.endTime), dropOrder: 1 },
    { title: 'STOPPED', value: ({ status }) => status?.stoppedReason ?? '', widthMin: 10 },
  ];
}

/** Names and values of one workflow; the steps of its run have a table of their own. */
export function workflowFields(
  { name, spec, status }: Workflow,
  clock: Clock,
): (readonly [string, string])[] {
  const run = status?.run;
  return [
    ['name', name],
    ['variables', labelText(spec?.variables ?? {})],
    ['disabled', spec?.disabled === true ? 'yes' : ''],
    ['not runnable', status?.notRunnable ?? ''],
    ...(run === undefined ? [['run', ''] as const] : runFields(run, clock)),
  ];
}

/** Names and values of one run. */
export function runFields(run: WorkflowRun, clock: Clock): (readonly [string, string])[] {
  return [
    ['run', run.name],
    ['state', enumName('WorkflowRunState', run.state)],
    ['asked for', `${ago(clock, run.createTime)} by ${run.requestedBy}`],
    ['started', ago(clock, run.startTime)],
    ['ended', ago(clock, run.endTime)],
    ['deadline', run.endTime === undefined ? ago(clock, run.deadline) : ''],
    ['waits for', run.waiting === undefined ? '' : `${run.waiting.reason}: ${run.waiting.message}`],
    [
      'error',
      run.error === undefined ? '' : `${failureWord(run.error.type)}: ${run.error.message}`,
    ],
    ['template', run.templateDigest],
  ];
}

/** Names and values of one batch. */
export function batchFields(batch: WorkflowBatch, clock: Clock): (readonly [string, string])[] {
  const { name, spec, status, createTime } = batch;
  return [
    ['name', name],
    ['template', spec?.template ?? ''],
    ['variables', labelText(spec?.variables ?? {})],
    ['at once', String(spec?.maxParallel ?? 1)],
    ['failures at most', spec?.maxFailures === 0 ? 'any number' : String(spec?.maxFailures ?? 1)],
    ['created', ago(clock, createTime)],
    ['ended', ago(clock, status?.endTime)],
    ['stopped', status?.stoppedReason ?? ''],
    ['hosts', countsText(batch)],
  ];
}

function countsText({ status }: WorkflowBatch): string {
  const counts: readonly (readonly [string, number | undefined])[] = [
    ['pending', status?.pending],
    ['running', status?.running],
    ['succeeded', status?.succeeded],
    ['failed', status?.failed],
    ['cancelled', status?.cancelled],
  ];
  const shown = counts.filter(([, count]) => (count ?? 0) > 0);
  return shown.map(([word, count]) => `${count} ${word}`).join(', ');
}

function workflowStateText({ spec, status }: Workflow): string {
  const state = enumName('WorkflowRunState', status?.run?.state ?? 0);
  return spec?.disabled === true ? `${state === '' ? '' : `${state}, `}disabled` : state;
}

function sinceOf(run: WorkflowRun | undefined) {
  return run?.endTime ?? run?.startTime ?? run?.createTime;
}

/** "2/5 reboot" */
function stepText(run: WorkflowRun | undefined): string {
  const carrier = run?.run;
  const step = carrier?.steps[carrier.currentStep];
  if (carrier === undefined || step === undefined || run?.endTime !== undefined) return '';
  return `${carrier.currentStep + 1}/${carrier.steps.length} ${step.title || step.name}`;
}

function problemText(run: WorkflowRun | undefined): string {
  return run?.error?.message ?? run?.waiting?.message ?? '';
}

function exitText({ exit, state }: RunStep): string {
  if (exit === undefined || state === StepState.PENDING) return '';
  return exit.signal === '' ? String(exit.code ?? '') : exit.signal;
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
