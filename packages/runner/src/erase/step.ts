/**
 * The steps `deploy.erase_devices` and `deploy.erase_devices_metadata`: guards first, then the
 * devices side by side, then one result that names every device that is not proved erased.
 *
 * Invariants:
 * E1 Nothing is written before every guard has passed: the order is well-formed, this is the
 *    right machine (guard 0), and the devices are exactly those of the order.
 * E2 One device's failure stops no other device, and no success of others hides it.
 * E3 `complete` needs the verdict `erased` for every device, and at least one device. Only the
 *    lab's switch takes the verdict away, and then evidence says so.
 * E5 Every device is held before the first write to any of them: what waits for its turn cannot be
 *    taken for another.
 * E4 When the step has ended, however it ended, nothing of it writes any more.
 */
import { agent, counted, eraseMetadataStep, eraseStep, RerunClass, verbFor } from '@rackwright/api';
import { type ErasureMethod, seedBytesMax, seedBytesMin } from '@rackwright/erasure';
import type { Complete, Failed, RetryAfter } from '@rackwright/results';
import { type GuardPassed, guardIdentity } from '../guard.ts';
import { parseProgress, type StagesByDevice } from '../progress-text.ts';
import type { Step, StepContext, StepEnd } from '../step.ts';
import { type DeviceResult, eraseDevice } from './device.ts';
import { type Grip, holdTargets, releaseTargets } from './grip.ts';
import { findTargets, type Target } from './targets.ts';

/** Devices erased at the same time. */
export const erasuresAtOnceMax = 4;
/** Log lines of all devices of a step together: every certificate holds its whole evidence. */
const evidenceLogLinesMax = 160;
/** When to check again a device that is still formatting, milliseconds. */
const busyDelayMs = 30_000;

export const eraseDevices: Step = {
  description: {
    name: eraseStep,
    priority: 10,
    rerunClass: RerunClass.CHECK_FIRST,
    destructive: true,
    abortable: true,
    description: 'Erases every disk of the host and proves it by reading back.',
    arguments: {},
  },
  run: (context) => runErase(context, undefined),
};

export const eraseDevicesMetadata: Step = {
  description: {
    name: eraseMetadataStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: true,
    abortable: true,
    description: 'Overwrites partition tables and signatures only: a weaker level, not an erasure.',
    arguments: {},
  },
  run: (context) => runErase(context, 'metadataOnly'),
};

async function runErase(
  context: StepContext,
  onlyMethod: ErasureMethod | undefined,
): Promise<StepEnd> {
  const malformed = malformedOrder(context.order);
  if (malformed !== undefined) return failed('invalidArgument', malformed);
  const guard = await guardIdentity(context);
  if (guard.kind === 'failed') return guard.end;
  const listing = await context.devices.list();
  const found = findTargets(context.order.devices, listing, onlyMethod);
  if (found.kind === 'changed') return failed('deviceChanged', found.differences.join('; '));
  if (found.kind === 'none' && context.order.allowDiskless !== true) {
    return failed('noDevices', 'the order names no device to erase');
  }
  const targets = found.kind === 'none' ? [] : found.targets;
  const grips = await holdTargets(context.devices, targets);
  try {
    return await eraseHeld(context, guard, grips);
  } finally {
    await releaseTargets(grips);
  }
}

async function eraseHeld(
  context: StepContext,
  guard: GuardPassed,
  grips: readonly Grip[],
): Promise<StepEnd> {
  if (context.order.mode === agent.StepMode.CHECK) {
    const busy = await busyTargets(grips);
    if (busy.length > 0) return { result: waitFor(busy) };
  }
  const targets = grips.map(({ target }) => target);
  context.log.info({ devices: targets.map(describeTarget).join(', ') }, 'erasure begins');
  context.crashPoint('runner.begun');
  const { arguments: asked, challengeSeed } = context.order;
  const lastProgress = parseProgress(asked['lastProgress'] ?? '', challengeSeed);
  const results = await eraseAll(context, grips, lastProgress);
  const evidence = {
    operationId: context.operationId,
    bootId: await context.machine.bootId(),
    runnerVersion: context.runnerVersion,
    system: guard.system,
    devices: results.map((result) => result.outcome),
    toolVersions: await context.machine.toolVersions(),
    mode: context.order.mode,
    identityWitnesses: [...guard.witnesses],
  };
  return { result: resultOf(context, results), evidence };
}

/** Devices that are still at work on their own, with what they do: nothing can be read yet. */
async function busyTargets(grips: readonly Grip[]): Promise<string[]> {
  const busy: string[] = [];
  for (const grip of grips) {
    if (grip.kind !== 'held') continue;
    const { device, identity } = grip.target;
    const work = await grip.held.busyWith();
    if (work !== undefined) busy.push(`${identity} (${device.name}): ${work}`);
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
  const seedBytes = order.challengeSeed.length;
  if (seedBytes < seedBytesMin || seedBytes > seedBytesMax) {
    return `challenge_seed must have ${seedBytesMin} to ${seedBytesMax} bytes, not ${seedBytes}`;
  }
  return undefined;
}

/**
 * Runs at most `erasuresAtOnceMax` targets at a time; results come in the order of targets. Rejects
 * for what is no device's failure, after everything else has stopped (E4).
 */
async function eraseAll(
  step: StepContext,
  grips: readonly Grip[],
  lastProgress: StagesByDevice,
): Promise<DeviceResult[]> {
  const results: DeviceResult[] = [];
  const broken = new AbortController();
  const context = { ...step, signal: AbortSignal.any([step.signal, broken.signal]) };
  const logLinesMax = Math.max(1, Math.floor(evidenceLogLinesMax / grips.length));
  const fractions = grips.map(() => 0);
  const weights = grips.map(({ target }) => Math.max(target.device.sizeBytes, 1));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const waiting = [...grips.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, grip] = next;
      const { target } = grip;
      const tell = (fraction: number, what: string): void => {
        fractions[index] = fraction;
        const done = fractions.reduce((sum, each, at) => sum + each * (weights[at] ?? 0), 0);
        const percent = Math.floor((100 * done) / total);
        context.progress(percent, `${target.identity}: ${what} ${Math.floor(100 * fraction)} %`);
      };
      const stage = lastProgress.get(target.identity);
      const challengeProved = stage !== undefined && stage !== 'begun';
      const task = { grip, challengeProved, logLinesMax, progress: tell };
      results[index] = await eraseDevice(context, task);
      tell(1, 'done');
    }
  };
  const workers = Array.from({ length: Math.min(erasuresAtOnceMax, grips.length) }, () =>
    work().catch((error: unknown) => broken.abort(error)),
  );
  await Promise.all(workers);
  if (broken.signal.aborted) throw broken.signal.reason;
  return results;
}

function resultOf(context: StepContext, results: readonly DeviceResult[]): Complete | Failed {
  const bad = results.filter(({ verdict }) => {
    return verdict.kind === 'notErased' || verdict.kind === 'unverified';
  });
  if (bad.length === 0) return { kind: 'complete' };
  const named = bad.map((result) => `${result.identity} (${result.name}): ${words(result)}`);
  const devices = counted(results.length, 'device');
  const count = `${bad.length} of ${devices} ${verbFor(bad.length)} not proved erased`;
  const message = `${count}: ${named.join('; ')}`;
  return { kind: 'failed', type: failureType(context, bad), message };
}

function failureType(context: StepContext, bad: readonly DeviceResult[]): Failed['type'] {
  if (context.signal.aborted) return 'cancelled';
  if (bad.some(({ verdict }) => verdict.kind === 'notErased')) return 'notErased';
  if (bad.some(({ loss }) => loss === 'changed')) return 'deviceChanged';
  if (bad.some(({ loss }) => loss === 'vanished')) return 'deviceVanished';
  if (bad.some(({ erasingFailed }) => erasingFailed)) return 'ioError';
  return 'unverified';
}

function words({ verdict }: DeviceResult): string {
  return verdict.kind === 'notErased' || verdict.kind === 'unverified'
    ? verdict.reason
    : verdict.kind;
}

function describeTarget(target: Target): string {
  const how = target.plan.kind === 'erase' ? target.plan.method : 'refused';
  return `${target.identity} (${target.device.name}) ${how}`;
}

function failed(type: Failed['type'], message: string): StepEnd {
  return { result: { kind: 'failed', type, message } };
}
