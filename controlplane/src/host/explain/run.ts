/** Explains a finished run: its outcome, the step, the cause, and what can be done. Pure. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  type Explanation,
  ExplanationSchema,
  FailureType,
  failureNameOf,
  failureWord,
  type Run,
  RunOutcome,
  type RunStep,
  StepState,
  shutdownText,
  type store,
} from '@rackwright/messages';
import { noUsualTimes, type UsualTimes } from '../fleet/usual.ts';
import { activeRun, runName } from '../pass/pass.ts';
import { isOfTemplate } from '../pass/step-names.ts';
import { adviceFor } from './advice.ts';
import { hostId } from './explanation-draft.ts';

/** `record` is the present host, to select advice that still helps. */
export function explainEndedRun(
  record: store.HostRecord,
  run: Run,
  usual: UsualTimes = noUsualTimes,
): Explanation {
  const usualMs = usual.runMs(run);
  const texts = [
    run.error?.message,
    run.error?.detail,
    ...run.steps.map(skipText),
    ...run.steps.map(shutdownOf),
    abortText(run),
  ].filter((text): text is string => text !== undefined && text !== '');
  return create(ExplanationSchema, {
    subject: `${record.host?.name ?? ''}/runs/${run.number}`,
    headline: `${runName(run)} ${howItEnded(run)}`,
    causes: texts.map((text) => create(CauseSchema, { text })),
    ...(run.endTime === undefined ? {} : { since: run.endTime }),
    unblock: adviceOn(record, run),
    lastEvidence: lastOutput(run),
    ...(usualMs === undefined ? {} : { usualDuration: durationFromMs(usualMs) }),
  });
}

/** Not where the failure names the person. */
function abortText({ abort, error }: Run): string {
  if (abort === undefined || error?.type === FailureType.CANCELLED) return '';
  return `${abort.by} asked for its end${abort.reason === '' ? '' : `: ${abort.reason}`}`;
}

const endings: Readonly<Record<number, string>> = {
  [RunOutcome.SUCCEEDED]: 'succeeded',
  [RunOutcome.FAILED]: 'failed',
  [RunOutcome.TIMED_OUT]: 'timed out',
  [RunOutcome.CANCELLED]: 'was cancelled',
};

/** "failed after 30 s at deploy.erase_devices: ioError" */
export function howItEnded(run: Run): string {
  const ended = `${endings[run.outcome] ?? 'ended'}${tookText(run)}`;
  if (run.outcome === RunOutcome.SUCCEEDED) return ended;
  const step = run.steps[run.currentStep];
  const at = step === undefined ? '' : ` at ${nameOf(step)}`;
  return `${ended}${at}${run.error === undefined ? '' : `: ${failureWord(run.error.type)}`}`;
}

function tookText({ startTime, endTime }: Run): string {
  if (startTime === undefined || endTime === undefined) return '';
  const seconds = Math.max(0, Math.round((timestampMs(endTime) - timestampMs(startTime)) / 1_000));
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
  const text = minutes === 0 ? `${rest} s` : `${minutes} min ${rest} s`;
  return ` after ${text}`;
}

/** Its own title and its step: "look (hold)". */
export function nameOf(step: RunStep): string {
  const { title, name } = step;
  return !isOfTemplate(step) || title === name ? name : `${title} (${name})`;
}

function skipText(step: RunStep): string {
  const { skip } = step;
  if (skip === undefined) return '';
  return `${nameOf(step)} was skipped by ${skip.by}${skip.reason === '' ? '' : `: ${skip.reason}`}`;
}

/** "power.off: the system shut down by itself, after 12 seconds"; empty: no text. */
function shutdownOf(step: RunStep): string {
  const { shutdown } = step;
  if (shutdown?.duration === undefined) return '';
  return `${nameOf(step)}: ${shutdownText(shutdown)}`;
}

/** An old run gets no advice: later runs are more relevant. */
function adviceOn(record: store.HostRecord, run: Run): string[] {
  const { status } = record.host ?? {};
  if (run.outcome === RunOutcome.SUCCEEDED || status === undefined) return [];
  const active = activeRun(status);
  if (active !== undefined) {
    const id = hostId(record);
    return [`see the run that is under way: rackwright host explain ${id}`];
  }
  const [, , , template] = run.workflowRun.split('/');
  if (template !== undefined && status.run?.number === run.number) {
    return [`run it again: rackwright workflow run ${hostId(record)} ${template}`];
  }
  if (status.lastError?.run !== runName(run)) return [];
  return adviceFor(failureNameOf(status.lastError.failure?.type ?? 0), record);
}

/** The last output of the step that ran last. */
function lastOutput({ steps }: Run): string {
  const last = steps.findLast(({ attempt, state }) => attempt > 0 && state !== StepState.PENDING);
  if (last === undefined) return '';
  const output = last.exit?.lastOutput.trim() || last.error;
  return `${nameOf(last)}${output === '' ? '' : `: ${output}`}`;
}
