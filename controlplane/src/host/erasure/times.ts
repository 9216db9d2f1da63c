/**
 * How long erasing may take, from sizes and the speed of slow but healthy devices: for deadlines
 * and for plans. A deadline is a bound on a device that hangs, never on one that is slow. Pure.
 */
import type { agent } from '@rackwright/api';
import {
  type DeviceFacts,
  describeVerification,
  deviceFactsOf,
  type ErasureMethod,
  methodOf,
  orderedVerification,
  type ReadSpeed,
  type Verification,
} from '@rackwright/erasure';

/** Devices that a runner works on at the same time, at least. */
const lanes = 4;
/** Whatever the size: guards, the challenge, and waiting for a device that erases itself. */
const allowanceMs = 3_600_000;
/** A format or sanitize is over within that for every device that we know of. */
const byItselfMs = 4 * 3_600_000;

/** Slower than this a device is taken for broken. */
const slowest = {
  hdd: { bytesPerSecond: 90e6, readsPerSecond: 40 },
  flash: { bytesPerSecond: 100e6, readsPerSecond: 500 },
  card: { bytesPerSecond: 5e6, readsPerSecond: 50 },
} as const satisfies Readonly<Record<string, ReadSpeed>>;

/** What a device of its kind does, for forecasts. */
const usual = {
  hdd: { bytesPerSecond: 180e6, readsPerSecond: 120 },
  flash: { bytesPerSecond: 500e6, readsPerSecond: 8_000 },
  card: { bytesPerSecond: 40e6, readsPerSecond: 800 },
} as const satisfies Readonly<Record<string, ReadSpeed>>;

type Kind = keyof typeof slowest;

function kindOf({ rotational, transport }: DeviceFacts): Kind {
  if (transport === 'mmc' || transport === 'usb') return 'card';
  return rotational ? 'hdd' : 'flash';
}

/** The speed that a forecast takes for a device that nobody has measured. */
export function usualSpeed(device: DeviceFacts): ReadSpeed {
  return usual[kindOf(device)];
}

/** Milliseconds that the erase step of these devices may take at most. */
export function eraseTimeoutMs(plans: readonly agent.DevicePlan[], configuredMs: number): number {
  const eachMs = plans.map((plan) => Math.ceil(deviceMs(plan)));
  const sum = eachMs.reduce((all, ms) => all + ms, 0);
  const longest = Math.max(0, ...eachMs);
  return Math.min(allowanceMs, configuredMs) + Math.max(longest, Math.ceil(sum / lanes) + longest);
}

/** Milliseconds that reading these devices again may take at most. */
export function readTimeoutMs(plans: readonly agent.DevicePlan[], configuredMs: number): number {
  const eachMs = plans.map((plan) => Math.ceil(readMs(plan)));
  return Math.min(allowanceMs, configuredMs) + eachMs.reduce((all, ms) => all + ms, 0);
}

function deviceMs(plan: agent.DevicePlan): number {
  if (plan.device === undefined) return 0;
  const device = deviceFactsOf(plan.device);
  const method = methodOf(plan.method);
  const delayMs = Number(plan.rereadDelay?.seconds ?? 0n) * 1_000;
  return methodMs(device, method) + readMs(plan) + delayMs;
}

function methodMs(device: DeviceFacts, method: ErasureMethod | undefined): number {
  if (method === 'metadataOnly') return 0;
  const writtenMs = (device.sizeBytes / slowest[kindOf(device)].bytesPerSecond) * 1_000;
  // What a device does itself may turn out to be written by it, block by block.
  return method === 'overwrite' ? writtenMs : Math.max(byItselfMs, writtenMs);
}

function readMs(plan: agent.DevicePlan): number {
  if (plan.device === undefined) return 0;
  const device = deviceFactsOf(plan.device);
  const method = methodOf(plan.method);
  if (method === 'metadataOnly') return 0;
  const verification = orderedVerification(plan);
  return secondsOf(device, verification, slowest[kindOf(device)]) * 1_000;
}

function secondsOf(
  { sizeBytes }: DeviceFacts,
  verification: Verification,
  speed: ReadSpeed,
): number {
  const question = {
    verification,
    method: 'overwrite',
    sizeBytes,
    speed,
    confidence: 0.99,
  } as const;
  return describeVerification(question).seconds;
}
