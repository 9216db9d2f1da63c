/**
 * The step `deploy.verify_erased`: after a power cycle the certified devices are read again, in the
 * same places and in new ones. It opens them for reading only.
 *
 * Invariant: the reading is judged as in the erasure whose certificate is tested. Its challenge was
 * proved then; the certificate stands for that.
 */
import { RerunClass, verifyErasedStep } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { Step, StepContext } from '../steps/step.ts';
import { type DeviceTask, runOnDevices, seedProblem } from './on-devices.ts';
import { cannotHold, type DeviceResult, resultOf, unerased } from './outcome.ts';
import { TransferPace } from './pace.ts';
import { newBlocks, readConfirmed } from './read-back.ts';
import { bytesToRead, planDevice } from './verify.ts';
import { noReadings, type Work } from './work.ts';

export const verifyErased: Step = {
  description: {
    name: verifyErasedStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: false,
    abortable: true,
    description: 'Reads erased disks again after a power cycle; writes nothing.',
    arguments: {},
  },
  run: (context) => runOnDevices(context, { access: 'read', malformed, handle: verify }),
};

function malformed(order: agent.RunStep): string | undefined {
  if (order.mode !== agent.StepMode.CHECK) return 'mode must be CHECK: the step writes nothing';
  for (const { erasedSeed } of order.devices) {
    const problem = seedProblem('erased_seed', erasedSeed);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

async function verify(context: StepContext, task: DeviceTask): Promise<DeviceResult> {
  const { heldTarget, logLinesMax, slots, progress } = task;
  const { target } = heldTarget;
  const startMs = context.clock.nowMs();
  if (heldTarget.kind !== 'held' || target.decision.kind !== 'erase') {
    const end = heldTarget.kind === 'failed' ? cannotHold(heldTarget.error) : unerased(heldTarget);
    return await resultOf(context, target, end, { startMs, logLinesMax });
  }
  const { method } = target.decision;
  const same = planDevice(target, method, target.devicePlan.erasedSeed);
  const others = newBlocks(planDevice(target, method, context.order.challengeSeed));
  const work: Work = {
    ...{ context, target, held: heldTarget.held, method, challenges: same, progress },
    pace: new TransferPace(context.clock, bytesToRead(same) + bytesToRead(others)),
    ...{ log: [], errors: {}, bytesWritten: 0, methodMs: 0, loss: undefined },
    ...noReadings,
    challenged: true,
  };
  let beganMs = startMs;
  const verdict = await slots.run(async () => {
    beganMs = context.clock.nowMs();
    context.crashPoint('runner.rereadBegun');
    const read = await readConfirmed(work, [same, others], 'reading again');
    context.crashPoint('runner.reread');
    return read;
  });
  const returned = verdict.kind === 'notErased';
  return await resultOf(
    context,
    target,
    { verdict, returned },
    { startMs: beganMs, logLinesMax, work },
  );
}
