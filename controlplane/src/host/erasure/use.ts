/**
 * Signs that a host has been used without an order of ours: then data may have come onto its disks,
 * and what was certified before says nothing of them (DESIGN §5, `useEpoch`).
 */
import { HostState, type RunStep, StepState } from '@rackwright/messages';
import { activeRun, causedBy, type Pass } from '../pass/pass.ts';
import { engineSteps, isBootStep, switchesOn } from '../pass/step-names.ts';
import { move } from '../pass/transitions.ts';
import { isDue } from './power-cycle.ts';

/** A host that is on although nobody here switched it on may have booted anything. */
export function observePower(pass: Pass, on: boolean): void {
  const { status } = pass;
  // An available host is off: one that is still on after a run that failed may have been reset.
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

/** Data may have come onto the disks: certificates of before no longer speak for them. */
export function suspectUse(pass: Pass, cause: string): void {
  const { status, record } = pass;
  // Of a dirty host only what has been erased since it was used can become worthless: as a
  // certificate, or as what is to be read again.
  const isCertified = record.certified.some(({ useEpoch }) => useEpoch === status.useEpoch);
  const counts = isCertified || isDue(pass);
  if (status.dirty && !counts && status.state !== HostState.AVAILABLE) return;
  move(status, 'used');
  causedBy(pass, 'agent', cause);
}

/**
 * Whether what the run under way has ordered last may be why the host is on. An order of before its
 * last switching off is no reason any more: whoever switches on after that is not us.
 */
function isOnByOrder(pass: Pass, seenOff: boolean): boolean {
  const latest = latestPower(pass);
  if (latest === undefined) return false;
  if (latest.name !== engineSteps.off) return mayHaveActed(pass, latest);
  // Until it is off, it is on from the boot before.
  if (latest.state === StepState.SUCCEEDED || seenOff) return false;
  const steps = activeRun(pass.status)?.steps ?? [];
  return steps.some(({ name, attempt }) => switchesOn(name) && attempt > 0);
}

/** Whether a netboot of the host may be the boot of a runner that has not come up yet. */
export function isBootOrdered(pass: Pass): boolean {
  const latest = latestPower(pass);
  if (latest === undefined || !isBootStep(latest.name) || !mayHaveActed(pass, latest)) return false;
  const { steps = [] } = activeRun(pass.status) ?? {};
  const up = steps
    .slice(steps.indexOf(latest))
    .find(({ name }) => name === engineSteps.awaitRunner);
  return up?.state !== StepState.SUCCEEDED;
}

/** The step of the run under way that began last of those that switch the host. */
function latestPower({ status }: Pass): RunStep | undefined {
  const run = activeRun(status);
  return run?.steps.findLast(({ name, state, attempt }, at) => {
    const wasSkipped = state === StepState.SKIPPED && attempt === 0;
    const began = at <= run.currentStep && state !== StepState.PENDING && !wasSkipped;
    return began && (name === engineSteps.off || switchesOn(name));
  });
}

/** What has not been sent has done nothing. */
function mayHaveActed({ record }: Pass, { state, attempt }: RunStep): boolean {
  if (state !== StepState.RUNNING || attempt > 1) return true;
  return record.operation?.sentTo !== undefined;
}
