/**
 * Signs that a host has been used without an order of ours: then data may have come onto its disks,
 * and what was certified before says nothing of them (DESIGN §5, `useEpoch`).
 */
import { HostState, type RunStep, StepState } from '@rackwright/messages';
import { engineSteps, isBootStep, switchesOn } from '../turn/step-names.ts';
import { move } from '../turn/transitions.ts';
import { activeRun, causedBy, type Turn } from '../turn/turn.ts';
import { isDue } from './power-cycle.ts';

/** A host that is on although nobody here switched it on may have booted anything. */
export function observePower(turn: Turn, on: boolean): void {
  const { status } = turn;
  // An available host is off: one that is still on after a run that failed may have been reset.
  const seenOff = status.poweredOn === false;
  const wasOff = seenOff || status.state === HostState.AVAILABLE;
  status.poweredOn = on;
  delete status.powerWord;
  if (!on) {
    turn.record.switchedOnRun = 0n;
    turn.record.inRunner = false;
  }
  if (on && wasOff && !isOnByOrder(turn, seenOff)) {
    suspectUse(turn, 'seen switched on without an order');
  }
}

/** Data may have come onto the disks: certificates of before no longer speak for them. */
export function suspectUse(turn: Turn, cause: string): void {
  const { status, record } = turn;
  // Of a dirty host only what has been erased since it was used can become worthless: as a
  // certificate, or as what is to be read again.
  const isCertified = record.certified.some(({ useEpoch }) => useEpoch === status.useEpoch);
  const counts = isCertified || isDue(turn);
  if (status.dirty && !counts && status.state !== HostState.AVAILABLE) return;
  move(status, 'used');
  causedBy(turn, 'agent', cause);
}

/**
 * Whether what the run under way has ordered last may be why the host is on. An order of before its
 * last switching off is no reason any more: whoever switches on after that is not us.
 */
function isOnByOrder(turn: Turn, seenOff: boolean): boolean {
  const latest = latestPower(turn);
  if (latest === undefined) return false;
  if (latest.name !== engineSteps.off) return mayHaveActed(turn, latest);
  // Until it is off, it is on from the boot before.
  if (latest.state === StepState.SUCCEEDED || seenOff) return false;
  const steps = activeRun(turn.status)?.steps ?? [];
  return steps.some(({ name, attempt }) => switchesOn(name) && attempt > 0);
}

/** Whether a netboot of the host may be the boot of a runner that has not come up yet. */
export function isBootOrdered(turn: Turn): boolean {
  const latest = latestPower(turn);
  if (latest === undefined || !isBootStep(latest.name) || !mayHaveActed(turn, latest)) return false;
  const { steps = [] } = activeRun(turn.status) ?? {};
  const up = steps
    .slice(steps.indexOf(latest))
    .find(({ name }) => name === engineSteps.awaitRunner);
  return up?.state !== StepState.SUCCEEDED;
}

/** The step of the run under way that began last of those that switch the host. */
function latestPower({ status }: Turn): RunStep | undefined {
  const run = activeRun(status);
  return run?.steps.findLast(({ name, state, attempt }, at) => {
    const wasSkipped = state === StepState.SKIPPED && attempt === 0;
    const began = at <= run.currentStep && state !== StepState.PENDING && !wasSkipped;
    return began && (name === engineSteps.off || switchesOn(name));
  });
}

/** What has not been sent has done nothing. */
function mayHaveActed({ record }: Turn, { state, attempt }: RunStep): boolean {
  if (state !== StepState.RUNNING || attempt > 1) return true;
  return record.operation?.sentTo !== undefined;
}
