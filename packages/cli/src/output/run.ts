/** Runs of a host as people read them. */
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  failureWord,
  type Run,
  RunOutcome,
  RunPhase,
  type RunStep,
  shutdownText,
  stepText,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { enumName } from './enum-name.ts';
import { formatFields, formatTable, type TextColumn } from './table.ts';
import { ago, duration, instant } from './time.ts';

/** Columns of `host runs`. */
export function runColumns(clock: Clock): TextColumn<Run>[] {
  return [
    { title: 'RUN', value: runName },
    { title: 'STATE', value: outcomeText, widthMin: 10 },
    { title: 'STARTED', value: ({ startTime }) => ago(clock, startTime), dropOrder: 1 },
    {
      title: 'TOOK',
      value: ({ startTime, endTime }) => took(startTime, endTime),
      dropOrder: 2,
    },
    { title: 'STEPS', value: stepsText, dropOrder: 3 },
    { title: 'ASKED FOR BY', value: ({ requestedBy }) => requestedBy, dropOrder: 4 },
    { title: 'OF', value: ({ workflowRun }) => workflowRun, dropOrder: 5 },
    { title: 'WHY', value: ({ error }) => error?.message ?? '', widthMin: 20 },
  ];
}

/** One run with its steps. */
export function runLines(run: Run, clock: Clock, columns: number | undefined): string[] {
  const { startTime, endTime, waiting, error } = run;
  const optional: [string, string][] = [
    ['waits for', waiting === undefined ? '' : `${waiting.reason}: ${waiting.message}`],
    ['error', error === undefined ? '' : `${failureWord(error.type)}: ${error.message}`],
    ['detail', error?.detail ?? ''],
    ['workflow', run.workflowRun],
    ['plan', run.planHash],
    ['resumes', run.resumes],
  ];
  return [
    ...formatFields([
      ['run', runName(run)],
      ['state', outcomeText(run)],
      ['asked for by', run.requestedBy],
      ['started', instant(startTime)],
      ['ended', instant(endTime)],
      ['took', took(startTime, endTime ?? timestampFromMs(clock.nowMs()))],
      ...optional.filter(([, value]) => value !== ''),
    ]),
    '',
    ...formatTable(stepColumns, [...run.steps.entries()], columns),
  ];
}

const stepColumns: TextColumn<readonly [number, RunStep]>[] = [
  { title: '#', value: ([index]) => String(index + 1) },
  { title: 'STEP', value: ([, step]) => stepText(step) },
  { title: 'STATE', value: ([, { state }]) => enumName('StepState', state) },
  {
    title: 'ATTEMPT',
    value: ([, { attempt }]) => (attempt > 1 ? String(attempt) : ''),
    dropOrder: 2,
  },
  { title: 'TOOK', value: ([, { startTime, endTime }]) => took(startTime, endTime), dropOrder: 1 },
  {
    title: 'EXIT',
    value: ([, { exit }]) => exit?.signal || String(exit?.code ?? ''),
    dropOrder: 3,
  },
  { title: 'WHY', value: ([, step]) => whyText(step), widthMin: 20 },
];

function whyText({ error, skip, skippedBecause, shutdown }: RunStep): string {
  if (skip !== undefined)
    return `skipped by ${skip.by}${skip.reason === '' ? '' : `: ${skip.reason}`}`;
  const down = shutdown?.duration === undefined ? '' : shutdownText(shutdown);
  return error || skippedBecause || down;
}

function runName({ kind, number }: Run): string {
  return `${enumName('RunKind', kind)} ${number}`;
}

function outcomeText({ phase, outcome, waiting }: Run): string {
  if (phase === RunPhase.ENDED) return enumName('RunOutcome', outcome) || 'ended';
  return waiting === undefined ? 'running' : `waiting for ${waiting.reason}`;
}

/** "7", or "3 of 7" for a run that has not completed all. */
function stepsText({ steps, currentStep, outcome }: Run): string {
  if (outcome === RunOutcome.SUCCEEDED) return String(steps.length);
  return `${Math.min(currentStep + 1, steps.length)} of ${steps.length}`;
}

function took(start: Timestamp | undefined, end: Timestamp | undefined): string {
  if (start === undefined || end === undefined) return '';
  return duration(Math.max(0, timestampMs(end) - timestampMs(start)));
}
