/**
 * The brakes (DESIGN §5) in one host's pass: what keeps a run from beginning, and an operation from
 * being sent. Pure.
 *
 * Invariants:
 * B1 Nothing destructive is sent while the rack or the fleet is frozen, or without a slot in every
 *    configured wipe budget. An operation that was already sent is stopped by its agent, which
 *    knows the freeze. A reimage waits for both while its host is in service, with the image
 *    fetched, and keeps its slot from then on, as long as some party can do its work.
 * B2 While the loss of a restored store is not accepted (`restored.ts`), no operation is sent. A
 *    removal is no exception: in the lost history, the machine may belong to another host. An
 *    agent may still be told to forget a host, because that touches no machine.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import {
  agent,
  counted,
  fetchImageStep,
  type HostWait,
  hostWaitOf,
  type Run,
  RunKind,
  StepState,
} from '@rackwright/messages';
import { activeRun, type Pass, type PassView, stopWaiting, waitFor } from './pass.ts';
import type { QuotaName, QuotaView, SlotChange } from './quota.ts';
import type { RunView, StepView } from './read-only.ts';
import { isBootStep } from './step-names.ts';
import type { FreezeInForce } from './types.ts';

/** The first step that has an effect on the host itself. */
export function firstOnHost(steps: readonly StepView[]): number {
  return steps.findIndex(({ name }) => name !== fetchImageStep);
}

/**
 * Requests the runner slot of a run that needs one. A run that has not begun on its host waits for
 * the slot, and no longer than that. True: the run may go on.
 */
export function takeRunnerSlot(pass: Pass, run: Run): boolean {
  const need = runnerSlotNeed(pass, run);
  const owner = whose(pass, run);
  switch (need.kind) {
    case 'none':
      if (hostWaitOf(run.waiting) === 'capacity') stopWaiting(pass, run);
      return true;
    case 'occupy':
      ask(pass, 'runner', { kind: 'occupy', owner });
      return true;
    case 'take':
      ask(pass, 'runner', { kind: 'take', owner });
      waitFor(pass, run, 'capacity', need.message);
      return false;
  }
}

type RunnerSlotNeed =
  /** The run has its slot, or needs none now. */
  | { readonly kind: 'none' }
  /** The run is at work on its host already. */
  | { readonly kind: 'occupy' }
  /** The run has to wait for a slot. */
  | { readonly kind: 'take'; readonly message: string };

/** A run that boots the runner needs a slot, where the rack has a limit. */
function runnerSlotNeed(pass: PassView, run: RunView): RunnerSlotNeed {
  const view = quotaViewIn(pass, 'runner');
  if (view?.quota === undefined || hasSlot(view, run)) return { kind: 'none' };
  const first = firstOnHost(run.steps);
  const boots = run.steps.some(({ name }) => isBootStep(name));
  if (!boots || run.currentStep < first) return { kind: 'none' };
  const hasBegun = run.currentStep > first || run.steps[first]?.state !== StepState.PENDING;
  if (hasBegun) return { kind: 'occupy' };
  const hosts = counted(view.quota.hosts, 'host');
  const limit = `${pass.spec.rack} lets ${hosts} be in the runner at once`;
  return { kind: 'take', message: `${limit}; this one waits for a slot` };
}

/** What keeps an operation from being sent now. */
export interface SendWait {
  readonly reason: HostWait;
  readonly message: string;
  /** The run requests a slot of this budget, and waits for it. */
  readonly budget?: WipeBudget;
}

type WipeBudget = Exclude<QuotaName, 'runner'>;

/** The brake that keeps an operation from being sent now; undefined: none. */
export function brakeOn(
  pass: PassView,
  run: RunView,
  operation: agent.Operation,
): SendWait | undefined {
  const { restored, freeze } = pass.snapshot;
  if (restored !== undefined) return { reason: 'restored', message: restored };
  const { kind, currentStep, steps } = run;
  const takesOut = kind === RunKind.REIMAGE && currentStep === stepBraked(kind, steps);
  if (!destroys(operation) && !takesOut) return undefined;
  if (freeze !== undefined) return { reason: 'freeze', message: freezeText(freeze) };
  const budget = budgetMissing(pass, run);
  if (budget === undefined) return undefined;
  return { reason: 'wipeBudget', message: budgetText(pass, budget), budget };
}

/**
 * The step before which brakes stop a run; -1: none. A reimage is stopped while its host is still
 * in service: no host is switched off for a write that is not permitted yet.
 */
export function stepBraked(kind: RunKind, steps: readonly StepView[]): number {
  const first = steps.findIndex(({ destructive }) => destructive);
  return kind === RunKind.REIMAGE ? Math.min(first, firstOnHost(steps)) : first;
}

/** "racks/r1 is frozen by user:ann since 2026-01-01T00:00:00Z: a fire drill" */
export function freezeText({ of, by, reason, at }: FreezeInForce): string {
  const since = at === undefined ? '' : ` since ${toJson(TimestampSchema, at)}`;
  return `${of} is frozen by ${by}${since}: ${reason}`;
}

/** Requests a slot of a wipe budget for the run. */
export function askForWipeSlot(pass: Pass, run: RunView, budget: WipeBudget): void {
  ask(pass, budget, { kind: 'take', owner: whose(pass, run) });
}

const wipeBudgets: readonly WipeBudget[] = ['rackWipes', 'fleetWipes'];

/**
 * The first wipe budget of which the run needs a slot and has none; undefined: it needs no more
 * slots. A host whose wipe has begun in this run is not stopped half-way. Steps without an attempt
 * come from a failed run that this one resumes: that run's slot no longer counts.
 */
function budgetMissing(pass: PassView, run: RunView): WipeBudget | undefined {
  const isUnderWay = run.steps.some(({ destructive, state, attempt }) => {
    return destructive && state === StepState.SUCCEEDED && attempt > 0;
  });
  if (isUnderWay) return undefined;
  return wipeBudgets.find((name) => {
    const view = quotaViewIn(pass, name);
    return view?.quota !== undefined && !hasSlot(view, run);
  });
}

function budgetText(pass: PassView, budget: WipeBudget): string {
  const quota = quotaViewIn(pass, budget)?.quota;
  const of = budget === 'rackWipes' ? pass.spec.rack : 'the fleet';
  if (quota?.kind !== 'inStretch') return `${of} has a wipe budget`;
  const hosts = counted(quota.hosts, 'host');
  return `${of} lets ${hosts} begin to be wiped in ${quota.stretchMs / 1_000} s`;
}

/** Whether the operation may destroy data. An unknown one counts (R8). */
function destroys({ kind }: agent.Operation): boolean {
  if (kind.case !== 'runStep') return false;
  return kind.value.mode !== agent.StepMode.CHECK && kind.value.destructive !== false;
}

/** The operation in progress has begun: from here on the wipe counts only for its period. */
export function noteBegun(pass: Pass, run: RunView): void {
  const operation = pass.record.operation?.operation;
  if (operation === undefined || !destroys(operation)) return;
  for (const view of pass.snapshot.quotaViews) {
    if (view.name === 'runner' || !hasSlot(view, run)) continue;
    ask(pass, view.name, { kind: 'leave', owner: whose(pass, run) });
  }
}

/**
 * Releases the slots that the host's present run does not need (any more), whichever run took them.
 * `isAgentGone`: an unsent operation cannot begin now; the slot is requested again when it can.
 */
export function releaseSlots(pass: Pass, isAgentGone: boolean): void {
  const run = pass.removed ? undefined : activeRun(pass.status);
  const { operation, sentTo } = pass.record.operation ?? {};
  const isWipe = operation !== undefined && destroys(operation);
  const isSent = isWipe && sentTo !== undefined;
  const mayWipe = isSent || (!isAgentGone && (isWipe || isOnWayToWrite(run)));
  for (const { name, own } of pass.snapshot.quotaViews) {
    for (const slot of own) {
      const needed = run?.number === slot.run && (name === 'runner' || mayWipe);
      if (needed || slot.kind === 'closed') continue;
      ask(pass, name, { kind: 'leave', owner: { hostUid: pass.host.uid, run: slot.run } });
    }
  }
}

/** A reimage that was permitted to write its host, and has not written yet. */
function isOnWayToWrite(run: RunView | undefined): boolean {
  if (run?.kind !== RunKind.REIMAGE) return false;
  const { kind, currentStep, steps } = run;
  const isLetGo = currentStep >= stepBraked(kind, steps);
  return isLetGo && steps.some(({ destructive }, index) => destructive && index >= currentStep);
}

function quotaViewIn({ snapshot }: PassView, name: QuotaName): QuotaView | undefined {
  return snapshot.quotaViews.find((view) => view.name === name);
}

function hasSlot({ own }: QuotaView, run: RunView): boolean {
  return own.some((slot) => slot.run === run.number && slot.kind === 'open');
}

function whose({ host }: PassView, { number }: RunView) {
  return { hostUid: host.uid, run: number };
}

/** Once in a pass, and not for a request that is already queued. */
function ask({ effects, snapshot }: Pass, name: QuotaName, change: SlotChange): void {
  if (change.kind === 'promote') return;
  const { run } = change.owner;
  const view = snapshot.quotaViews.find((each) => each.name === name);
  const queued = view?.own.some((slot) => slot.run === run && slot.kind === 'queued') === true;
  if (change.kind === 'take' && queued) return;
  const needsSlot = effects.some((effect) => {
    return effect.kind === 'quota' && effect.name === name && effect.change.kind === change.kind;
  });
  if (!needsSlot || change.kind === 'leave') effects.push({ kind: 'quota', name, change });
}
