/**
 * Observations that show that a host was used without our order: then new data may be on its disks,
 * and earlier certificates no longer apply (DESIGN §5, `useEpoch`).
 */
import { actors, HostState, StepState } from '@rackwright/messages';
import { activeRun, type Pass, type PassView, recordCause } from '../pass/pass.ts';
import type { StepView } from '../pass/read-only.ts';
import { engineSteps, isBootStep, switchesOn } from '../pass/step-names.ts';
import { move } from '../pass/transitions.ts';
import { isRereadingDue } from './power-cycle.ts';

/** A host that is on without our action may have booted anything. */
export function observePower(pass: Pass, on: boolean): void {
  const { status } = pass;
  // An available host is off: if it is still on after a failed run, it may have been reset.
  const seenOff = status.poweredOn === false;
  const wasOff = seenOff || status.state === HostState.AVAILABLE;
  status.poweredOn = on;
  delete status.powerWord;
  if (!on) {
    pass.record.switchedOnRun = 0n;
    pass.record.inRunner = false;
  }
  if (on && wasOff && !isOnByOrder(pass, seenOff)) {
    suspectUse(pass, 'seen switched on without an order');
  }
}

/** New data may be on the disks: earlier certificates no longer apply. */
export function suspectUse(pass: Pass, cause: string): void {
  const { status, record } = pass;
  // On a dirty host, only erasures since its last use can lose their value: as certificates, or as
  // pending second readings.
  const isCertified = record.certified.some(({ useEpoch }) => useEpoch === status.useEpoch);
  const counts = isCertified || isRereadingDue(pass);
  if (status.dirty && !counts && status.state !== HostState.AVAILABLE) return;
  move(status, 'used');
  recordCause(pass, actors.agent, cause);
}

/**
 * Whether the last order of the run in progress may be why the host is on. An order before its last
 * power off is no longer a reason: then somebody else has switched it on.
 */
function isOnByOrder(pass: PassView, seenOff: boolean): boolean {
  const latest = latestPower(pass);
  if (latest === undefined) return false;
  if (latest.name !== engineSteps.off) return mayHaveActed(pass, latest);
  // Until it is off, it is on from the earlier boot.
  if (latest.state === StepState.SUCCEEDED || seenOff) return false;
  const steps = activeRun(pass.status)?.steps ?? [];
  return steps.some(({ name, attempt }) => switchesOn(name) && attempt > 0);
}

/** Whether a netboot of the host may be the boot of a runner that is not up yet. */
export function isBootOrdered(pass: PassView): boolean {
  const latest = latestPower(pass);
  if (latest === undefined || !isBootStep(latest.name) || !mayHaveActed(pass, latest)) return false;
  const { steps = [] } = activeRun(pass.status) ?? {};
  const up = steps
    .slice(steps.indexOf(latest))
    .find(({ name }) => name === engineSteps.awaitRunner);
  return up?.state !== StepState.SUCCEEDED;
}

/** The latest step of the run in progress that switches the host's power. */
function latestPower({ status }: PassView): StepView | undefined {
  const run = activeRun(status);
  return run?.steps.findLast(({ name, state, attempt }, at) => {
    const wasSkipped = state === StepState.SKIPPED && attempt === 0;
    const began = at <= run.currentStep && state !== StepState.PENDING && !wasSkipped;
    return began && (name === engineSteps.off || switchesOn(name));
  });
}

/** An unsent order has had no effect. */
function mayHaveActed({ record }: PassView, { state, attempt }: StepView): boolean {
  if (state !== StepState.RUNNING || attempt > 1) return true;
  return record.operation?.sentTo !== undefined;
}
