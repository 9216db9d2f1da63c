/**
 * Erases one device: challenge, method, verdict, in this order and never another.
 *
 * Invariants:
 * D1 Always returns an outcome; a refusal of the device becomes the outcome's text.
 * D2 The verdict is read after the erasing call, for every answer of that call, unless it failed.
 * D3 `mode: check` writes nothing, and proves nothing without an earlier attempt's challenge.
 * D4 The outcome counts challenge blocks only when they were read back as written.
 * D5 Everything is done to the device as it is held. It is confirmed before each phase and after
 *    the last one; once it is lost, nothing more is written and the outcome says so.
 */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { RecordedVerdict } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import { pause } from '@rackwright/platform';
import { DeviceError } from '../machine/block-devices.ts';
import type { StepContext } from '../steps/step.ts';
import type { HeldTarget } from './held-targets.ts';
import { applyMethod, bytesToWrite, challengeRegions } from './method.ts';
import type { DeviceTask } from './on-devices.ts';
import {
  cannotHold,
  type DeviceResult,
  type DeviceVerdict,
  resultOf,
  unerased,
} from './outcome.ts';
import { TransferPace } from './pace.ts';
import { readAgain, readBack } from './read-back.ts';
import type { Slots } from './slots.ts';
import { bytesToRead, planDevice } from './verify.ts';
import { noReadings, noteFailure, stopIfCancelled, timed, type Work } from './work.ts';

export interface EraseTask extends DeviceTask {
  /** For checks: an earlier attempt wrote the challenge. */
  readonly challengeProved: boolean;
}

/** Erases or checks one target. */
export async function eraseDevice(context: StepContext, task: EraseTask): Promise<DeviceResult> {
  const { heldTarget, slots, logLinesMax } = task;
  const startMs = context.clock.nowMs();
  if (heldTarget.kind !== 'held' || heldTarget.target.decision.kind !== 'erase') {
    const end = heldTarget.kind === 'failed' ? cannotHold(heldTarget.error) : unerased(heldTarget);
    return await resultOf(context, heldTarget.target, end, { startMs, logLinesMax });
  }
  const work = startWork(context, task, heldTarget, heldTarget.target.decision.method);
  let beganMs = startMs;
  const end = await slots.run(async () => {
    beganMs = context.clock.nowMs();
    return await handle(work);
  });
  const later = await rereadLater(work, end, slots);
  return await resultOf(context, heldTarget.target, later, { startMs: beganMs, logLinesMax, work });
}

function startWork(
  context: StepContext,
  { challengeProved, progress }: EraseTask,
  { target, held }: HeldTarget & { readonly kind: 'held' },
  method: Work['method'],
): Work {
  const challenges = planDevice(target, method, context.order.challengeSeed);
  const isCheck = context.order.mode === agent.StepMode.CHECK;
  const written = isCheck ? 0 : bytesToWrite({ method, challenges });
  return {
    ...{ context, target, held, method, challenges, progress, log: [], errors: {} },
    pace: new TransferPace(context.clock, written + bytesToRead(challenges)),
    ...{ bytesWritten: 0, methodMs: 0, loss: undefined, ...noReadings },
    challenged: isCheck && challengeProved,
  };
}

async function handle(work: Work): Promise<DeviceVerdict> {
  if (work.context.order.mode === agent.StepMode.CHECK) return { verdict: await readBack(work) };
  const failure = await erase(work);
  if (failure !== undefined) return { verdict: failure, erasingFailed: true };
  return { verdict: await judge(work) };
}

/** Challenge and method. Answers the failure, or undefined when the verdict may be read. */
async function erase(work: Work): Promise<RecordedVerdict | undefined> {
  const { context, held } = work;
  const { identity } = work.target;
  try {
    stopIfCancelled(context);
    await context.recordStage(identity, 'begun');
    // The devices before it took hours: the permission of the order may be over (R11).
    const may = await context.requestBegin();
    if (may.kind === 'over') throw new DeviceError(`not begun: ${may.reason}`);
    stopIfCancelled(context);
    await held.confirm();
    await challengeRegions(work);
    work.challenged = true;
    await context.recordStage(identity, 'challenged');
    context.crashPoint('runner.challenged');
    await held.confirm();
    await timed(
      work,
      () => applyMethod(work),
      (ms) => {
        work.methodMs = ms;
      },
    );
    await held.confirm();
    await context.recordStage(identity, 'erased');
    context.crashPoint('runner.erased');
    return undefined;
  } catch (error) {
    const reason = noteFailure(work, error);
    await noteLoss(work);
    return { kind: 'unverified', reason };
  }
}

/** A device that fails may have been pulled. */
async function noteLoss(work: Work): Promise<void> {
  if (work.loss !== undefined) return;
  try {
    await work.held.checkAttached();
  } catch (error) {
    noteFailure(work, error);
  }
}

async function judge(work: Work): Promise<RecordedVerdict> {
  const { context } = work;
  const { identity } = work.target;
  if (context.verdictSwitchedOff) {
    context.log.warn({ device: identity }, 'THE VERDICT IS SWITCHED OFF: nothing is proved');
    return { kind: 'switchedOff' };
  }
  const verdict = await readBack(work);
  await context.recordStage(identity, 'verified');
  context.crashPoint('runner.verified');
  return verdict;
}

/** Reads again after the delay that the plan asks for. Meanwhile its slot is free for others. */
async function rereadLater(work: Work, end: DeviceVerdict, slots: Slots): Promise<DeviceVerdict> {
  const { context, target } = work;
  const { rereadDelay } = target.devicePlan;
  const delayMs = rereadDelay === undefined ? 0 : durationMs(rereadDelay);
  if (delayMs <= 0 || end.verdict.kind !== 'erased') return end;
  const seconds = Math.ceil(delayMs / 1_000);
  work.progress(work.pace.fraction, `waits ${seconds} s until it is read again`);
  await pause(context.clock, delayMs, context.signal);
  if (context.signal.aborted) {
    return { verdict: { kind: 'unverified', reason: 'cancelled before it was read again' } };
  }
  const verdict = await slots.run(() => readAgain(work, `read again after ${seconds} s`));
  return { verdict, returned: verdict.kind === 'notErased' };
}
