/**
 * What the steps over devices share: guards first, then all devices held, then the devices side by
 * side, then a look at everything that is attached, then one result that names every device that is
 * not proved erased.
 *
 * Invariants:
 * E1 Nothing is written before every guard has passed: the order is well-formed, this is the
 *    right machine (guard 0), and the devices are exactly those of the order.
 * E2 One device's failure stops no other device, and no success of others hides it.
 * E3 `complete` needs the verdict `erased` for every device, and at least one device. Only the
 *    lab's switch takes the verdict away, and then evidence says so.
 * E4 When the step has ended, however it ended, nothing of it writes any more.
 * E5 Every device is held before the first write to any of them. So a waiting device cannot be
 *    confused with another.
 * E6 `complete` needs the devices of the order, and no others, to be there after the last verdict.
 *    Evidence of a step that failed says so.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type DeviceFacts,
  deviceIdentity,
  type ErasureMethod,
  healthOnWire,
  seedBytesMax,
  seedBytesMin,
  storageDeviceOf,
} from '@rackwright/erasure';
import { counted, type DeviceHealthSchema, verbFor } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { Complete, FailedAttempt, RetryAfter } from '@rackwright/results';
import type { DeviceAccess, DeviceListing } from '../machine/block-devices.ts';
import { type GuardPassed, guardIdentity } from '../steps/guard.ts';
import type { StepContext, StepResult } from '../steps/step.ts';
import { type HeldTarget, holdTargets, releaseTargets } from './held-targets.ts';
import type { DeviceResult } from './outcome.ts';
import { type DiskPreparation, prepareDevices } from './prepare.ts';
import { Slots } from './slots.ts';
import { findTargets, type Target } from './targets.ts';
import type { DeviceProgress } from './work.ts';

/** Devices at work at the same time: each has transfers of its own in memory. */
export const erasuresAtOnceMax = 16;
/** Log lines of all devices of a step together: every certificate holds its whole evidence. */
const evidenceLogLinesMax = 160;
/** When to check again a device that is still formatting, milliseconds. */
const busyDelayMs = 30_000;

export interface DeviceTask {
  readonly heldTarget: HeldTarget;
  /** The device's share of the log lines that one step's evidence may hold. */
  readonly logLinesMax: number;
  readonly progress: DeviceProgress;
  /** Limits how many devices are at work at once. */
  readonly slots: Slots;
}

export interface DevicesStep {
  /** The only method of the step, or undefined when the order says it per device. */
  readonly onlyMethod?: ErasureMethod;
  readonly access: DeviceAccess;
  /** The problem of the order, besides the checks of every step. */
  malformed?(order: agent.RunStep): string | undefined;
  /** Does the step's work on one target. Rejects only for errors that are no device's failure. */
  handle(context: StepContext, task: DeviceTask): Promise<DeviceResult>;
}

/** Runs a step over the devices of its order. */
export async function runOnDevices(context: StepContext, step: DevicesStep): Promise<StepResult> {
  const malformed = malformedOrder(context.order) ?? step.malformed?.(context.order);
  if (malformed !== undefined) return failed('invalidArgument', malformed);
  const guard = await guardIdentity(context);
  if (guard.kind === 'failed') return guard.end;
  const present = await context.devices.list();
  const planned = findTargets(context.order.devices, present, step.onlyMethod);
  if (planned.kind === 'changed') return failed('deviceChanged', planned.differences.join('; '));
  const prepared = await prepareDevices(context, present, step.access);
  if (prepared.kind === 'failed') return failed(prepared.type, prepared.message);
  const found = findTargets(context.order.devices, prepared.listing, step.onlyMethod);
  if (found.kind === 'changed') return failed('deviceChanged', found.differences.join('; '));
  if (found.kind === 'none' && context.order.allowDiskless !== true) {
    return failed('noDevices', 'the order names no device to erase');
  }
  const targets = found.kind === 'none' ? [] : found.targets;
  const heldTargets = await holdTargets(context.devices, targets, step.access);
  try {
    return await runHeld(context, step, guard, heldTargets, prepared.done);
  } finally {
    await releaseTargets(heldTargets);
  }
}

async function runHeld(
  context: StepContext,
  step: DevicesStep,
  guard: GuardPassed,
  heldTargets: readonly HeldTarget[],
  prepared: ReadonlyMap<string, DiskPreparation>,
): Promise<StepResult> {
  const busy = await busyTargets(heldTargets);
  if (busy.length > 0) return { result: waitFor(busy) };
  const targets = heldTargets.map(({ target }) => target);
  context.log.info({ devices: targets.map(describeTarget).join(', ') }, 'the devices are held');
  context.crashPoint('runner.begun');
  const results = await handleAll(context, step, heldTargets);
  const after = await context.devices.list();
  const result = resultOf(context, results, lossAfter(context.order, after, step));
  const evidence: MessageInitShape<typeof agent.StepEvidenceSchema> = {
    operationId: context.operationId,
    bootId: await context.machine.bootId(),
    runnerVersion: context.runnerVersion,
    system: guard.system,
    devices: results.map(({ outcome, identity }) =>
      Object.assign(outcome, prepared.get(identity), healthOf(identity, targets, after.devices)),
    ),
    toolVersions: await context.machine.toolVersions(),
    mode: context.order.mode,
    identityWitnesses: [...guard.witnesses],
    devicesAfter: after.devices.map(storageDeviceOf),
    ofFailedStep: result.kind !== 'complete',
  };
  return { result, evidence };
}

interface Health {
  readonly healthBefore?: MessageInitShape<typeof DeviceHealthSchema>;
  readonly healthAfter?: MessageInitShape<typeof DeviceHealthSchema>;
}

/** A device's health in its listing, before and after the step. */
function healthOf(
  identity: string,
  targets: readonly Target[],
  after: readonly DeviceFacts[],
): Health {
  const before = targets.find((each) => each.identity === identity)?.device.health;
  const now = after.find((each) => deviceIdentity(each) === identity)?.health;
  return {
    ...(before === undefined ? {} : { healthBefore: healthOnWire(before) }),
    ...(now === undefined ? {} : { healthAfter: healthOnWire(now) }),
  };
}

/** Devices that are still at work on their own, with their activity: they cannot be used yet. */
async function busyTargets(heldTargets: readonly HeldTarget[]): Promise<string[]> {
  const busy: string[] = [];
  for (const heldTarget of heldTargets) {
    if (heldTarget.kind !== 'held') continue;
    const { device, identity } = heldTarget.target;
    const work = await heldTarget.held.ownWork();
    if (work?.kind === 'running') busy.push(`${identity} (${device.name}): ${work.text}`);
  }
  return busy;
}

function waitFor(busy: readonly string[]): RetryAfter {
  const message = `devices are busy: ${busy.join('; ')}`;
  return { kind: 'retryAfter', reason: 'locked', message, delayMs: busyDelayMs };
}

function malformedOrder(order: agent.RunStep): string | undefined {
  if (order.mode !== agent.StepMode.RUN && order.mode !== agent.StepMode.CHECK) {
    return 'mode must be RUN or CHECK';
  }
  return seedProblem('challenge_seed', order.challengeSeed);
}

/** Why a challenge cannot be planned from these bytes. */
export function seedProblem(name: string, { length }: Uint8Array): string | undefined {
  if (length >= seedBytesMin && length <= seedBytesMax) return undefined;
  return `${name} must have ${seedBytesMin} to ${seedBytesMax} bytes, not ${length}`;
}

/**
 * Runs at most `erasuresAtOnceMax` targets at a time; results come in the order of targets. Rejects
 * for an error that is no device's failure, after everything else has stopped (E4).
 */
async function handleAll(
  outer: StepContext,
  step: DevicesStep,
  heldTargets: readonly HeldTarget[],
): Promise<DeviceResult[]> {
  const broken = new AbortController();
  const context = { ...outer, signal: AbortSignal.any([outer.signal, broken.signal]) };
  const logLinesMax = Math.max(1, Math.floor(evidenceLogLinesMax / heldTargets.length));
  const slots = new Slots(erasuresAtOnceMax);
  const fractions = heldTargets.map(() => 0);
  const weights = heldTargets.map(({ target }) => Math.max(target.device.sizeBytes, 1));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const results = await Promise.all(
    heldTargets.map(async (heldTarget, index): Promise<DeviceResult | undefined> => {
      const progress: DeviceProgress = (fraction, action) => {
        fractions[index] = fraction;
        const done = fractions.reduce((sum, each, at) => sum + each * (weights[at] ?? 0), 0);
        const percent = Math.floor((100 * done) / total);
        const own = Math.floor(100 * fraction);
        context.reportProgress(percent, `${heldTarget.target.identity}: ${own} %, ${action}`);
      };
      try {
        const result = await step.handle(context, { heldTarget, logLinesMax, progress, slots });
        progress(1, 'done');
        return result;
      } catch (error) {
        broken.abort(error);
        return undefined;
      }
    }),
  );
  if (broken.signal.aborted) throw broken.signal.reason;
  return results.filter((result) => result !== undefined);
}

/** The result of the look after the last verdict. */
interface LossAfter {
  readonly type: 'deviceChanged' | 'deviceVanished';
  readonly differences: readonly string[];
}

/** How the present device differs from the order; undefined when it does not. */
function lossAfter(
  order: agent.RunStep,
  after: DeviceListing,
  { onlyMethod }: DevicesStep,
): LossAfter | undefined {
  const found = findTargets(order.devices, after, onlyMethod);
  if (found.kind !== 'changed') return undefined;
  const type = found.onlyMissing ? 'deviceVanished' : 'deviceChanged';
  return { type, differences: found.differences };
}

function resultOf(
  context: StepContext,
  results: readonly DeviceResult[],
  after: LossAfter | undefined,
): Complete | FailedAttempt {
  const bad = results.filter(({ verdict }) => {
    return verdict.kind === 'notErased' || verdict.kind === 'unverified';
  });
  const seen = after?.differences.map((each) => `seen at the end: ${each}`) ?? [];
  if (bad.length === 0) {
    if (after === undefined) return { kind: 'complete' };
    return { kind: 'failed', type: after.type, message: seen.join('; ') };
  }
  const named = bad.map((result) => `${result.identity} (${result.name}): ${verdictText(result)}`);
  const devices = counted(results.length, 'device');
  const count = `${bad.length} of ${devices} ${verbFor(bad.length)} not proved erased`;
  const message = `${count}: ${[...named, ...seen].join('; ')}`;
  return { kind: 'failed', type: failureType(context, bad), message };
}

/** The worst that is known. Proof that data is there outranks everything else. */
function failureType(context: StepContext, bad: readonly DeviceResult[]): FailedAttempt['type'] {
  if (bad.some(({ returned }) => returned)) return 'dataReturned';
  if (context.signal.aborted) return 'cancelled';
  if (bad.some(({ verdict }) => verdict.kind === 'notErased')) return 'notErased';
  if (bad.some(({ loss }) => loss === 'changed')) return 'deviceChanged';
  if (bad.some(({ loss }) => loss === 'vanished')) return 'deviceVanished';
  if (bad.some(({ erasingFailed }) => erasingFailed)) return 'ioError';
  return 'unverified';
}

function verdictText({ verdict }: DeviceResult): string {
  return verdict.kind === 'notErased' || verdict.kind === 'unverified'
    ? verdict.reason
    : verdict.kind;
}

function describeTarget(target: Target): string {
  const how = target.decision.kind === 'erase' ? target.decision.method : 'refused';
  return `${target.identity} (${target.device.name}) ${how}`;
}

function failed(type: FailedAttempt['type'], message: string): StepResult {
  return { result: { kind: 'failed', type, message } };
}
