/**
 * The brakes (DESIGN §5), as one host's pass sees them: what keeps a run from beginning, and an
 * operation from being sent. Pure.
 *
 * Invariants:
 * B1 Nothing destructive is sent while the rack or the fleet is frozen, or without a place in every
 *    wipe budget that is set. Who sent it before is stopped by its agent, which knows the freeze.
 *    A reimage waits for both in service, with its image fetched, and keeps its place from there,
 *    for as long as somebody can do its work.
 * B2 While a store that has lost something is not accepted (`restored.ts`), nothing is sent but
 *    for a removal.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import {
  agent,
  counted,
  fetchImageStep,
  type Run,
  RunKind,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { activeRun, type Pass, stopWaiting, waitFor } from './pass.ts';
import type { QuotaName, QuotaView, SlotChange } from './quota.ts';
import { isBootStep } from './step-names.ts';
import type { FreezeInForce } from './types.ts';

/** The first step that does something to the host itself. */
export function firstOnHost(steps: readonly RunStep[]): number {
  return steps.findIndex(({ name }) => name !== fetchImageStep);
}

/**
 * Whether a run may go on to its host: one that boots the runner needs a place where the rack has a
 * limit.
 */
export function hasRunnerPlace(pass: Pass, run: Run): boolean {
  const standing = standingIn(pass, 'runner');
  const { quota } = standing ?? {};
  const first = firstOnHost(run.steps);
  const free = standing === undefined || quota === undefined || hasPlace(standing, run);
  if (free || run.currentStep < first || !run.steps.some(({ name }) => isBootStep(name))) {
    if (run.waiting?.reason === 'capacity') stopWaiting(pass, run);
    return true;
  }
  const begun = run.currentStep > first || run.steps[first]?.state !== StepState.PENDING;
  ask(pass, 'runner', { kind: begun ? 'occupy' : 'take', who: whose(pass, run) });
  if (begun) return true;
  const hosts = counted(quota.hosts, 'host');
  const limit = `${pass.spec.rack} lets ${hosts} be in the runner at once`;
  waitFor(pass, run, 'capacity', `${limit}; this one waits for its place`);
  return false;
}

/** Whether a brake keeps an operation from being sent now; the run then waits for its end. */
export function isBraked(pass: Pass, run: Run, operation: agent.Operation): boolean {
  const { restored, freeze } = pass.context;
  if (restored !== undefined && run.kind !== RunKind.DELETE) {
    waitFor(pass, run, 'restored', restored);
    return true;
  }
  const { kind, currentStep, steps } = run;
  const takesOut = kind === RunKind.REIMAGE && currentStep === stepBraked(kind, steps);
  if (!destroys(operation) && !takesOut) return false;
  if (freeze !== undefined) {
    waitFor(pass, run, 'freeze', freezeText(freeze));
    return true;
  }
  return !hasWipePlaces(pass, run);
}

/**
 * The step before which brakes stop a run; -1: none. A reimage is stopped while its host is in
 * service still: nobody is switched off for what may not be written yet.
 */
export function stepBraked(kind: RunKind, steps: readonly RunStep[]): number {
  const first = steps.findIndex(({ destructive }) => destructive);
  return kind === RunKind.REIMAGE ? Math.min(first, firstOnHost(steps)) : first;
}

/** "racks/r1 is frozen by user:ann since 2026-01-01T00:00:00Z: a fire drill" */
export function freezeText({ of, by, reason, at }: FreezeInForce): string {
  const since = at === undefined ? '' : ` since ${toJson(TimestampSchema, at)}`;
  return `${of} is frozen by ${by}${since}: ${reason}`;
}

/**
 * A host that has begun to be wiped in this run is not stopped half-way. Steps without an attempt
 * are those of a failed run that this one goes on with: that run's place counts no more.
 */
function hasWipePlaces(pass: Pass, run: Run): boolean {
  const underWay = run.steps.some(({ destructive, state, attempt }) => {
    return destructive && state === StepState.SUCCEEDED && attempt > 0;
  });
  if (underWay) return true;
  for (const name of ['rackWipes', 'fleetWipes'] as const) {
    const standing = standingIn(pass, name);
    if (standing?.quota === undefined || hasPlace(standing, run)) continue;
    ask(pass, name, { kind: 'take', who: whose(pass, run) });
    waitFor(pass, run, 'wipeBudget', budgetText(pass, standing));
    return false;
  }
  return true;
}

function budgetText(pass: Pass, { name, quota }: QuotaView): string {
  const of = name === 'rackWipes' ? pass.spec.rack : 'the fleet';
  if (quota?.kind !== 'inStretch') return `${of} has a wipe budget`;
  const hosts = counted(quota.hosts, 'host');
  return `${of} lets ${hosts} begin to be wiped in ${quota.stretchMs / 1_000} s`;
}

/** Whether carrying it out may destroy something. What does not say counts (R8). */
function destroys({ kind }: agent.Operation): boolean {
  if (kind.case !== 'runStep') return false;
  return kind.value.mode !== agent.StepMode.CHECK && kind.value.destructive !== false;
}

/** The operation under way has begun: from here on the wipe counts for its stretch only. */
export function noteBegun(pass: Pass, run: Run): void {
  const operation = pass.record.operation?.operation;
  if (operation === undefined || !destroys(operation)) return;
  for (const standing of pass.context.standings) {
    if (standing.name === 'runner' || !hasPlace(standing, run)) continue;
    ask(pass, standing.name, { kind: 'leave', who: whose(pass, run) });
  }
}

/**
 * Gives back what the host's present run does not need (any more), whoever took it. `isAgentGone`:
 * what has not been sent cannot begin now; the place is asked for again when it can.
 */
export function leavePlaces(pass: Pass, isAgentGone: boolean): void {
  const run = pass.removed ? undefined : activeRun(pass.status);
  const { operation, sentTo } = pass.record.operation ?? {};
  const isWipe = operation !== undefined && destroys(operation);
  const isSent = isWipe && sentTo !== undefined;
  const mayWipe = isSent || (!isAgentGone && (isWipe || isOnWayToWrite(run)));
  for (const { name, own } of pass.context.standings) {
    for (const slot of own) {
      const needed = run?.number === slot.run && (name === 'runner' || mayWipe);
      if (needed || slot.kind === 'closed') continue;
      ask(pass, name, { kind: 'leave', who: { hostUid: pass.host.uid, run: slot.run } });
    }
  }
}

/** A reimage that has been let go to its host, and has not written it yet. */
function isOnWayToWrite(run: Run | undefined): boolean {
  if (run?.kind !== RunKind.REIMAGE) return false;
  const { kind, currentStep, steps } = run;
  const isLetGo = currentStep >= stepBraked(kind, steps);
  return isLetGo && steps.some(({ destructive }, index) => destructive && index >= currentStep);
}

function standingIn({ context }: Pass, name: QuotaName): QuotaView | undefined {
  return context.standings.find((standing) => standing.name === name);
}

function hasPlace({ own }: QuotaView, run: Run): boolean {
  return own.some((slot) => slot.run === run.number && slot.kind === 'open');
}

function whose({ host }: Pass, { number }: Run) {
  return { hostUid: host.uid, run: number };
}

/** Once in a pass, and not for what is queued already. */
function ask({ effects, context }: Pass, name: QuotaName, change: SlotChange): void {
  if (change.kind === 'promote') return;
  const { run } = change.who;
  const standing = context.standings.find((each) => each.name === name);
  const queued = standing?.own.some((slot) => slot.run === run && slot.kind === 'queued') === true;
  if (change.kind === 'take' && queued) return;
  const asked = effects.some((effect) => {
    return effect.kind === 'quota' && effect.name === name && effect.change.kind === change.kind;
  });
  if (!asked || change.kind === 'leave') effects.push({ kind: 'quota', name, change });
}
