/**
 * How long an erasure may take, from sizes and speeds: for deadlines. A deadline limits a device
 * that hangs, never one that is only slow. Pure.
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

/** The least number of devices that a runner handles in parallel. */
const lanes = 4;
/** For any size: guards, the challenge, and the wait for a device that erases itself. */
const allowanceMs = 3_600_000;
/** Every known device finishes a format or sanitize within this time. */
const byItselfMs = 4 * 3_600_000;

/** A boot medium is read faster than this, unless it hangs. */
const mediumBytesPerMs = 5_000;
/** The most devices of a host with the size of one boot medium: each of them is read. */
const devicesOfOneSize = 4;

/** The time limit of an inspection that reads whole boot media, milliseconds. */
export function inspectTimeoutMs(cleaning: HostSpec['cleaning'], configuredMs: number): number {
  const bytes = (cleaning?.bootMedia ?? []).reduce((sum, each) => sum + each.sizeBytes, 0n);
  return configuredMs + Math.ceil((devicesOfOneSize * Number(bytes)) / mediumBytesPerMs);
}

/** For any reported size: there is a longest time, and dates have an end. */
const longestMs = 1_000 * 24 * 3_600_000;

/**
 * Twice the working time of the burn-ins among these steps, milliseconds: a phase that began in
 * time is finished. When there are more disks than a runner handles in parallel, some wait for
 * others.
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

/** The time limit of the erase step of these devices, milliseconds. */
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

/** The time limit of the second reading of these devices, milliseconds. */
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
  // A device's own erasure may turn out to write block by block.
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

/** How often the locations of a plan are read, or as many others in one device. */
function timesRead(plan: agent.DevicePlan, level: Verification['level']): number {
  const again = level === 'sampled' ? 2 : 1;
  if (plan.erasedSeed.length > 0) return again;
  const isDelayed = plan.rereadDelay !== undefined && durationMs(plan.rereadDelay) > 0;
  return isDelayed ? 1 + again : 1;
}
