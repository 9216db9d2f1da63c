/**
 * Signs that a host has been used without an order of ours: then data may have come onto its disks,
 * and what was certified before says nothing of them (DESIGN §5, `useEpoch`).
 */
import { HostState } from '@rackwright/api';
import { activeRun, causedBy, type Turn } from './turn.ts';

/** A host that is on although nobody here switched it on may have booted anything. */
export function observePower(turn: Turn, on: boolean): void {
  const { status } = turn;
  // An available host is off: one that is still on after a run that failed may have been reset.
  const wasOff = status.poweredOn === false || status.state === HostState.AVAILABLE;
  status.poweredOn = on;
  const ordered = hasOrdered(turn, 'power.on', 'power.bootRunner', 'power.bootRescue');
  if (on && wasOff && !ordered) suspectUse(turn, 'seen switched on without an order');
}

/** Data may have come onto the disks: certificates of before no longer speak for them. */
export function suspectUse(turn: Turn, cause: string): void {
  const { status } = turn;
  if (status.dirty && status.state !== HostState.AVAILABLE) return;
  status.useEpoch += 1n;
  status.dirty = true;
  if (status.state === HostState.AVAILABLE) status.state = HostState.MANAGEABLE;
  causedBy(turn, 'agent', cause);
}

/** Whether the run under way has come as far as to order one of these steps. */
export function hasOrdered(turn: Turn, ...names: readonly string[]): boolean {
  const steps = activeRun(turn.status)?.steps ?? [];
  return steps.some(({ name, attempt }) => names.includes(name) && attempt > 0);
}
