/**
 * How long erasing may take, from sizes and speeds: for deadlines. A deadline is a bound on a
 * device that hangs, never on one that is slow. Pure.
 */
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type DeviceFacts,
  describeVerification,
  deviceFactsOf,
  type ErasureMethod,
  methodOf,
  orderedVerification,
  type Verification,
} from '@rackwright/erasure';
import {
  type agent,
  burnInDiskStep,
  type HostSpec,
  isBurnIn,
  type RunStep,
} from '@rackwright/messages';
import { secondsOf } from '../../steps/index.ts';
import { type KnownSpeeds, slowestSpeed } from './speeds.ts';

/** Devices that a runner works on at the same time, at least. */
const lanes = 4;
/** Whatever the size: guards, the challenge, and waiting for a device that erases itself. */
const allowanceMs = 3_600_000;
/** A format or sanitize is over within that for every device that we know of. */
const byItselfMs = 4 * 3_600_000;

/** A boot medium is read faster, unless it hangs. */
const mediumBytesPerMs = 5_000;
/** Devices of the size of one boot medium that a host may have: each of them is read. */
const devicesOfOneSize = 4;

/** Milliseconds that an inspection may take that reads boot media whole. */
export function inspectTimeoutMs(cleaning: HostSpec['cleaning'], configuredMs: number): number {
  const bytes = (cleaning?.bootMedia ?? []).reduce((sum, each) => sum + each.sizeBytes, 0n);
  return configuredMs + Math.ceil((devicesOfOneSize * Number(bytes)) / mediumBytesPerMs);
}

/** However large disks say they are: nobody waits longer, and calendars end. */
const longestMs = 1_000 * 24 * 3_600_000;

/**
 * Milliseconds that burn-ins among these steps are asked to work, twice over: what was begun in
 * time is brought to its end. Of more disks than a runner works on at once, some wait for others.
 */
export function burnInMs(
  steps: readonly Pick<RunStep, 'name' | 'arguments'>[],
  disks: number,
): number {
  const seconds = steps.map(({ name, arguments: given }) => {
    const rounds = name === burnInDiskStep ? Math.max(1, Math.ceil(disks / lanes)) : 1;
    return isBurnIn(name) ? rounds * Number(secondsOf(given['duration'] ?? '') ?? 0n) : 0;
  });
  return Math.min(
    longestMs,
    seconds.reduce((sum, each) => sum + 2_000 * each, 0),
  );
}

/** Milliseconds that the erase step of these devices may take at most. */
export function eraseTimeoutMs(
  known: KnownSpeeds,
  plans: readonly agent.DevicePlan[],
  configuredMs: number,
): number {
  const eachMs = plans.map((plan) => Math.ceil(deviceMs(known, plan)));
  const sum = eachMs.reduce((all, ms) => all + ms, 0);
  const longest = Math.max(0, ...eachMs);
  return bounded(configuredMs, Math.ceil(sum / lanes) + longest);
}

/** Milliseconds that reading these devices again may take at most. */
export function readTimeoutMs(
  known: KnownSpeeds,
  plans: readonly agent.DevicePlan[],
  configuredMs: number,
): number {
  const eachMs = plans.map((plan) => Math.ceil(readMs(known, plan)));
  return bounded(
    configuredMs,
    eachMs.reduce((all, ms) => all + ms, 0),
  );
}

function bounded(configuredMs: number, workMs: number): number {
  return Math.min(longestMs, Math.min(allowanceMs, configuredMs) + workMs);
}

function deviceMs(known: KnownSpeeds, plan: agent.DevicePlan): number {
  if (plan.device === undefined) return 0;
  const device = deviceFactsOf(plan.device);
  const method = methodOf(plan.method);
  const delayMs = plan.rereadDelay === undefined ? 0 : durationMs(plan.rereadDelay);
  return methodMs(known, device, method) + readMs(known, plan) + delayMs;
}

function methodMs(
  known: KnownSpeeds,
  device: DeviceFacts,
  method: ErasureMethod | undefined,
): number {
  if (method === 'metadataOnly') return 0;
  const writtenMs = (device.sizeBytes / slowestSpeed(known, device).writtenPerSecond) * 1_000;
  // What a device does itself may turn out to be written by it, block by block.
  return method === 'overwrite' ? writtenMs : Math.max(byItselfMs, writtenMs);
}

function readMs(known: KnownSpeeds, plan: agent.DevicePlan): number {
  if (plan.device === undefined) return 0;
  const device = deviceFactsOf(plan.device);
  if (methodOf(plan.method) === 'metadataOnly') return 0;
  const verification = orderedVerification(plan);
  const question = {
    verification,
    method: 'overwrite',
    sizeBytes: device.sizeBytes,
    speed: slowestSpeed(known, device),
    confidence: 0.99,
  } as const;
  return describeVerification(question).seconds * 1_000 * timesRead(plan, verification.level);
}

/** How often the places of a plan are read, or as many others in one device. */
function timesRead(plan: agent.DevicePlan, level: Verification['level']): number {
  const again = level === 'sampled' ? 2 : 1;
  if (plan.erasedSeed.length > 0) return again;
  const isDelayed = plan.rereadDelay !== undefined && durationMs(plan.rereadDelay) > 0;
  return isDelayed ? 1 + again : 1;
}
