/** Helpers for tests of workflows on the bench: rendered steps, and their results. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  asWorkflowUid,
  FailureType,
  HostGoal,
  HostState,
  RerunClass,
  type Run,
  type RunStep,
  SkipCause,
  StepState,
} from '@rackwright/messages';
import { agentWordMs } from '../operation/operation.ts';
import { isOfTemplate } from '../pass/step-names.ts';
import type { WorkflowStep } from '../pass/types.ts';
import { type Bench, bench, done, verified } from './bench.ts';
import { statusOf } from './deleting.ts';

export const workflowRun = 'hosts/h1/workflows/t1/runs/1';

const actions: Readonly<Record<string, string>> = {
  'run.script': 'script',
  'run.command': 'command',
  'run.file': 'file',
  wait: 'wait',
  hold: 'hold',
  webhook: 'webhook',
  powerOn: 'power',
  powerOff: 'power',
  reboot: 'power',
  bootDisk: 'power',
};

/** A rendered step, in the template package's form, from a short description. */
export function rendered(
  title: string,
  step: string,
  more: Partial<WorkflowStep> = {},
): WorkflowStep {
  return {
    title,
    step,
    action: actions[step] ?? 'bmc',
    arguments: {},
    retries: 0,
    timeoutMs: undefined,
    onFailure: 'fail',
    onTimeout: 'fail',
    condition: '',
    skipCause: SkipCause.UNSPECIFIED,
    skippedBecause: '',
    handOff: false,
    destructive: false,
    rerunClass: RerunClass.SAFE,
    handler: false,
    ...more,
  };
}

export const script = (title: string, more?: Partial<WorkflowStep>) =>
  rendered(title, 'run.script', more);

export const bmcStep = 'management.clear_event_log';

/** A manageable host whose agent can do one BMC step. */
export function workable(state: HostState = HostState.MANAGEABLE): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const clear = { name: bmcStep, destructive: false, rerunClass: RerunClass.SAFE };
  const agentSteps = [create(agent.StepDescriptionSchema, clear)];
  host.snapshot = { ...host.snapshot, agentSteps };
  const status = statusOf(host);
  status.state = state;
  status.dirty = state !== HostState.AVAILABLE;
  status.poweredOn = state === HostState.PROVISIONED;
  if (state === HostState.AVAILABLE) {
    const { spec } = host.record.host ?? {};
    if (spec !== undefined) spec.goal = HostGoal.AVAILABLE;
  }
  return host;
}

/** Starts the run of a workflow; returns the effects of the pass. */
export function startOn(host: Bench, steps: readonly WorkflowStep[], timeoutMs?: number) {
  const templateDigest = 'd1';
  return host.request({
    kind: 'workflow',
    workflowRun,
    workflowUid: asWorkflowUid('w1'),
    templateDigest,
    steps,
    timeoutMs,
  });
}

export function runOf(host: Bench): Run {
  const { run } = statusOf(host);
  if (run === undefined) throw new Error('no run');
  return run;
}

export function stepNow(host: Bench): RunStep | undefined {
  const run = runOf(host);
  return run.steps[run.currentStep];
}

/** Switches off, boots, and the runner reports: up to the step that waited for it. */
export function bootNow(host: Bench): void {
  host.report(done);
  host.report(done);
  host.runnerReady();
}

/** The results of the template's steps: "a succeeded". */
export function told(host: Bench): string[] {
  return runOf(host)
    .steps.filter(isOfTemplate)
    .map(({ title, state }) => `${title} ${texts[state] ?? state}`);
}

/** The executed steps of the engine, in order, without skipped ones. */
export function taken(host: Bench): string[] {
  return runOf(host)
    .steps.filter(({ attempt }) => attempt > 0)
    .map(({ name }) => name);
}

const texts: Readonly<Record<number, string>> = {
  [StepState.PENDING]: 'pending',
  [StepState.RUNNING]: 'running',
  [StepState.SUCCEEDED]: 'succeeded',
  [StepState.FAILED]: 'failed',
  [StepState.SKIPPED]: 'skipped',
};

/** A completion with the output of its program. */
export function wrote(text: string, code = 0): agent.Report['result'] {
  const output = outputOf(text, code);
  return { case: 'complete', value: create(agent.CompleteSchema, { output }) };
}

/** A failure of a program that ended with this code. */
export function exited(code: number, text = ''): agent.Report['result'] {
  const output = outputOf(text, code);
  const message = `ended with exit code ${code}`;
  return {
    case: 'failed',
    value: create(agent.FailedSchema, { type: FailureType.EXIT_CODE, message, output }),
  };
}

function outputOf(text: string, code: number) {
  const tail = new TextEncoder().encode(text);
  return { exit: { code, outputBytes: BigInt(tail.length) }, tail };
}

/** Advances the clock; the agent was heard at the end. */
export function passTime(host: Bench, ms: number) {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session !== undefined) {
    host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  }
  return host.apply({ kind: 'tick' });
}

/** Advances the clock by the time of an order, plus the agent's time to report. */
export function passOrder(host: Bench, ms: number) {
  return passTime(host, ms + agentWordMs);
}
