/** `--wait` of workflows: until the requested run has ended. */
import { type Workflow, type WorkflowRun, WorkflowRunState } from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { GoalUnreachable, WaitedTooLong, WorkFailed } from '../../failure.ts';
import { enumName } from '../../output/enum-name.ts';
import type { WorkProgress } from '../../output/progress.ts';
import { pause } from '../frame/pause.ts';
import { progressView } from '../frame/progress.ts';
import { checkInterrupted, type WaitFlags } from '../frame/wait.ts';
import type { WorkflowClient } from './client.ts';

/** Between two looks, milliseconds. */
const pollEveryMs = 1_000;

/** Reasons of a waiting run that only a person ends. */
const waitsForPerson: ReadonlySet<string> = new Set(['hold', 'restored', 'disabled']);

/**
 * With `--wait` the workflow once the requested run has succeeded; else the answer. Rejects with
 * `WorkFailed`, `GoalUnreachable`, `WaitedTooLong` or `Interrupted`.
 */
export async function workflowDone(
  io: CommandIo,
  workflows: WorkflowClient,
  { wait, timeout }: WaitFlags,
  answered: Workflow,
): Promise<Workflow> {
  const first = answered.status?.run;
  if (!wait || first === undefined) return answered;
  const { clock, signal } = io;
  const [, host = '', , template = ''] = answered.name.split('/');
  const explain = `see \`rackwright workflow explain ${host} ${template}\``;
  const view = progressView(io);
  const beganMs = clock.nowMs();
  let run = first;
  try {
    while (!signal.aborted) {
      const { name, state, waiting, error } = run;
      view.show(() => workOf(answered.name, run, clock.nowMs() - beganMs));
      if (state === WorkflowRunState.SUCCEEDED) break;
      if (state !== WorkflowRunState.PENDING && state !== WorkflowRunState.RUNNING) {
        const why = error === undefined ? '' : `: ${error.message}`;
        throw new WorkFailed(`${name} ${enumName('WorkflowRunState', state)}${why}; ${explain}`);
      }
      const stuck = run.run?.waiting ?? waiting;
      if (waitsForPerson.has(stuck?.reason ?? '')) {
        throw new GoalUnreachable(`${name} waits for a person: ${stuck?.message}; ${explain}`);
      }
      if (timeout !== undefined && clock.nowMs() - beganMs > timeout * 1_000) {
        throw new WaitedTooLong(`waited ${timeout} s for ${name}; it goes on; ${explain}`);
      }
      await pause(io, pollEveryMs);
      if (!signal.aborted) run = await workflows.getWorkflowRun({ name });
    }
  } finally {
    view.end();
  }
  checkInterrupted(io, `rackwright workflow get ${host} ${template}`);
  return workflows.getWorkflow({ name: answered.name });
}

function workOf(
  name: string,
  { state, waiting, run }: WorkflowRun,
  elapsedMs: number,
): WorkProgress {
  const { steps = [], currentStep = 0 } = run ?? {};
  const step = steps[currentStep];
  const at =
    step === undefined ? '' : `: ${currentStep + 1}/${steps.length} ${step.title || step.name}`;
  const waits = waiting === undefined ? '' : `, waits for ${waiting.reason}`;
  return {
    text: `${name}  ${enumName('WorkflowRunState', state)}${at}${waits}`,
    percent: steps.length === 0 ? undefined : Math.floor((currentStep / steps.length) * 100),
    elapsedMs,
    leftMs: undefined,
  };
}
