/**
 * The speeds of a host's disks: learned from evidence, used for deadlines and plans. Pure.
 *
 * An agent reports these numbers. A deadline uses them only within bounds: no report makes it
 * shorter than for an unmeasured disk, or unlimited.
 */
import { create } from '@bufbuild/protobuf';
import { blockBytes, type DeviceFacts, deviceIdentity } from '@rackwright/erasure';
import { agent, type RunStep, store } from '@rackwright/messages';
import { identitiesNow, type Pass } from '../pass/pass.ts';
import { withEvidence } from './evidence.ts';

export interface DiskSpeed {
  /** Sequential writes, bytes. */
  readonly writtenPerSecond: number;
  /** Sequential reads, bytes. */
  readonly bytesPerSecond: number;
  /** Reads of 4 KiB at random locations. */
  readonly readsPerSecond: number;
}

/** The known speeds of a host's disks. */
export type KnownSpeeds = readonly store.DiskSpeed[];

/** A shorter phase reveals nothing about the speed, milliseconds. */
const settleMs = 2_000;
/** For deadlines, a disk may become this many times slower: it ages, and others share its bus. */
const slackOfMeasured = 3;
/** No measured disk gets more than this many times the time of the slowest of its kind. */
const slowerAtMost = 20;

/** No disk is faster; every field of the record can hold this value. */
const bytesPerSecondMax = 1_000_000_000_000n;

/** An unmeasured disk that is slower counts as broken. */
const slowest = {
  hdd: { writtenPerSecond: 90e6, bytesPerSecond: 90e6, readsPerSecond: 40 },
  flash: { writtenPerSecond: 100e6, bytesPerSecond: 100e6, readsPerSecond: 500 },
  card: { writtenPerSecond: 5e6, bytesPerSecond: 5e6, readsPerSecond: 50 },
} as const satisfies Readonly<Record<string, DiskSpeed>>;

type Kind = keyof typeof slowest;

/** Typical speeds of each kind, for forecasts. */
const usual: Readonly<Record<Kind, DiskSpeed>> = {
  hdd: { writtenPerSecond: 180e6, bytesPerSecond: 180e6, readsPerSecond: 120 },
  flash: { writtenPerSecond: 500e6, bytesPerSecond: 500e6, readsPerSecond: 8_000 },
  card: { writtenPerSecond: 40e6, bytesPerSecond: 40e6, readsPerSecond: 800 },
};

function kindOf({ rotational, transport }: DeviceFacts): Kind {
  if (transport === 'mmc' || transport === 'usb') return 'card';
  return rotational ? 'hdd' : 'flash';
}

/** The measured speed of a disk; undefined without a measurement. */
export function measuredSpeed(known: KnownSpeeds, device: DeviceFacts): DiskSpeed | undefined {
  const identity = deviceIdentity(device);
  const kept = known.find(({ device: each }) => each === identity);
  if (kept === undefined || identity === '') return undefined;
  const { writtenBytesPerSecond, readBytesPerSecond, readsPerSecond } = kept;
  return {
    writtenPerSecond: Number(writtenBytesPerSecond),
    bytesPerSecond: Number(readBytesPerSecond),
    readsPerSecond,
  };
}

/** The speed for forecasts: measured, otherwise typical. */
export function expectedSpeed(known: KnownSpeeds, device: DeviceFacts): DiskSpeed {
  return each(measuredSpeed(known, device), usual[kindOf(device)], (measured) => measured);
}

/**
 * The speed for deadlines: a slower disk counts as hung. A measured disk gets more time than
 * others, never less: it may have been fast while its cache was empty. A disk slower than every
 * bound gets no extra time: it is broken, or the report is false.
 */
export function slowestSpeed(known: KnownSpeeds, device: DeviceFacts): DiskSpeed {
  return each(measuredSpeed(known, device), slowest[kindOf(device)], (measured, unmeasured) => {
    const least = unmeasured / slowerAtMost;
    if (measured < least) return unmeasured;
    return Math.min(unmeasured, Math.max(least, measured / slackOfMeasured));
  });
}

/** Each of the three numbers from `of`, if measured, otherwise from the table. */
function each(
  measured: DiskSpeed | undefined,
  table: DiskSpeed,
  of: (measured: number, table: number) => number,
): DiskSpeed {
  const take = (field: keyof DiskSpeed) => {
    const found = measured?.[field] ?? 0;
    return found > 0 ? of(found, table[field]) : table[field];
  };
  return {
    writtenPerSecond: take('writtenPerSecond'),
    bytesPerSecond: take('bytesPerSecond'),
    readsPerSecond: take('readsPerSecond'),
  };
}

/** Stores the measured speeds of disks that the host has; other stored speeds stay. */
export function noteSpeeds(pass: Pass, outcomes: readonly agent.DeviceOutcome[]): void {
  const { record } = pass;
  const present = identitiesNow(pass);
  const speeds = new Map(record.diskSpeeds.map((speed) => [speed.device, speed]));
  for (const outcome of outcomes) {
    if (outcome.device === undefined) continue;
    const device = deviceIdentity(outcome.device);
    const seen = speedsOf(outcome);
    if (Object.keys(seen).length === 0) continue;
    const speed = speeds.get(device) ?? create(store.DiskSpeedSchema, { device });
    speeds.set(device, Object.assign(speed, seen));
  }
  record.diskSpeeds = [...speeds.values()].filter(({ device }) => present.has(device));
}

/** The same for a failed step: the next attempt gets the time that the disks need. */
export function noteSpeedsOfFailed(pass: Pass, step: RunStep, { evidence }: agent.Failed): void {
  if (evidence === undefined) return;
  withEvidence(pass, step, evidence, (_signed, parsed) => {
    const { operation } = pass.record;
    if (parsed.operationId !== operation?.operation?.id) return undefined;
    noteSpeeds(pass, parsed.devices);
    return undefined;
  });
}

type MeasuredSpeeds = Partial<
  Pick<store.DiskSpeed, 'writtenBytesPerSecond' | 'readBytesPerSecond' | 'readsPerSecond'>
>;

function speedsOf(outcome: agent.DeviceOutcome): MeasuredSpeeds {
  const { method, bytesWritten, methodMs, bytesOfReadings, verifyMs, verification } = outcome;
  // Metadata is few bytes at random locations: that reveals nothing about the speed.
  if (method === agent.ErasureMethod.METADATA_ONLY) return {};
  // A device that erases itself is busy for long, and is written to only at the end.
  const isWritten = method === agent.ErasureMethod.OVERWRITE;
  const written = isWritten ? perSecond(bytesWritten, methodMs) : 0n;
  const read = perSecond(bytesOfReadings, verifyMs);
  const isWhole = verification?.level === agent.VerificationLevel.FULL;
  const reads = Math.floor(Number(read) / blockBytes);
  return {
    ...(written > 0n ? { writtenBytesPerSecond: written } : {}),
    ...(read > 0n && isWhole ? { readBytesPerSecond: read } : {}),
    ...(reads > 0 && !isWhole ? { readsPerSecond: reads } : {}),
  };
}

/** 0: unknown. */
function perSecond(bytes: bigint, ms: bigint): bigint {
  if (ms < settleMs) return 0n;
  const found = (bytes * 1_000n) / ms;
  return found < bytesPerSecondMax ? found : bytesPerSecondMax;
}
