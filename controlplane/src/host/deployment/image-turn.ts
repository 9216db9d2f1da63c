/**
 * An order that waits at its agent for its turn to get an image: the step's own time begins when
 * that comes, and the wait for it has a bound of its own (R5). Pure.
 */
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type agent,
  fetchImageStep,
  lasting,
  type Run,
  type RunFailure,
  type RunStep,
  writeImageStep,
} from '@rackwright/messages';
import { later, type Pass, stopWaiting, waitFor } from '../pass/pass.ts';
import { stepFailure } from '../pass/step-failure.ts';
import type { EngineTiming } from '../pass/timing.ts';

/** A failure's type that says that the turn of an order did not come. */

const takesTurns: ReadonlySet<string> = new Set([fetchImageStep, writeImageStep]);

/** How long the order of a step may wait at its agent for its turn; 0: it waits for none. */
export function queueTimeoutMs({ name }: RunStep, timing: EngineTiming): number {
  return takesTurns.has(name) ? timing.imageQueueTimeoutMs : 0;
}

/** What an agent says of an order under way: its place in the queue, or that its turn has come. */
export function foldPass(pass: Pass, run: Run, step: RunStep, said: agent.Continuing): void {
  const { operation: slot, image } = pass.record;
  const { timing } = pass.context;
  const queueMs = queueTimeoutMs(step, timing);
  if (slot?.sendTime === undefined || slot.cancelId !== '' || queueMs === 0) return;
  if (said.queuePlace > 0) {
    slot.queued = true;
    step.deadline = timestampFromMs(timestampMs(slot.sendTime) + queueMs);
    waitFor(pass, run, 'image', `its turn to get ${image}`, slot.sendTime);
  } else if (slot.queued) {
    slot.queued = false;
    step.deadline = later(pass, timing.imageTimeoutMs);
    if (run.waiting?.reason === 'image') stopWaiting(pass, run);
  }
}

/** The one text for it, whoever says so first; `detail`: the agent's own words. */
export function turnMissed({ record, spec, context }: Pass, detail = ''): RunFailure {
  const waited = lasting(context.timing.imageQueueTimeoutMs);
  const text =
    `waited ${waited} for its turn to get ${record.image}: the agent of ${spec.rack} serves as ` +
    'many hosts at once as its imagesAtOnceMax says';
  return stepFailure('queueTimeout', text, detail);
}
