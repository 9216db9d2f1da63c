/**
 * An order that waits in its agent's queue to get an image: the step's own time begins when the
 * wait ends, and the wait has a bound of its own (R5). Pure.
 */
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type agent,
  durationText,
  fetchImageStep,
  hostWaitOf,
  type Run,
  type RunFailure,
  type RunStep,
  writeImageStep,
} from '@rackwright/messages';
import { type Pass, type PassView, stopWaiting, timeAfter, waitFor } from '../pass/pass.ts';
import type { StepView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';
import type { EngineTiming } from '../pass/timing.ts';

/** The steps that wait in the queue. */
const queuedSteps: ReadonlySet<string> = new Set([fetchImageStep, writeImageStep]);

/** How long the order of a step may wait in its agent's queue; 0: it does not wait. */
export function queueTimeoutMs({ name }: StepView, timing: EngineTiming): number {
  return queuedSteps.has(name) ? timing.imageQueueTimeoutMs : 0;
}

/** The agent's progress of an order: its position in the queue, or that the wait is over. */
export function foldQueueProgress(
  pass: Pass,
  run: Run,
  step: RunStep,
  progress: agent.Continuing,
): void {
  const { operation: operationRecord, image } = pass.record;
  const { timing } = pass.snapshot;
  const queueMs = queueTimeoutMs(step, timing);
  if (operationRecord?.sendTime === undefined || operationRecord.cancelId !== '' || queueMs === 0)
    return;
  if (progress.queuePlace > 0) {
    operationRecord.queued = true;
    step.deadline = timestampFromMs(timestampMs(operationRecord.sendTime) + queueMs);
    waitFor(pass, run, 'image', `a slot to get ${image}`, operationRecord.sendTime);
  } else if (operationRecord.queued) {
    operationRecord.queued = false;
    step.deadline = timeAfter(pass, timing.imageTimeoutMs);
    if (hostWaitOf(run.waiting) === 'image') stopWaiting(pass, run);
  }
}

/** The text for a wait that was too long, from any source; `detail`: the agent's own words. */
export function queueTimedOut({ record, spec, snapshot }: PassView, detail = ''): RunFailure {
  const waited = durationText(snapshot.timing.imageQueueTimeoutMs);
  const text =
    `waited ${waited} for a slot to get ${record.image}: the agent of ${spec.rack} serves as ` +
    'many hosts at once as its imagesAtOnceMax says';
  return stepFailure('queueTimeout', text, detail);
}
