/** The state and counts while one device is erased or read back. */
import type { ErasureMethod } from '@rackwright/erasure';
import { DeviceError, type DeviceLoss, type HeldDevice } from '../machine/block-devices.ts';
import type { StepContext } from '../steps/step.ts';
import type { TransferPace } from './pace.ts';
import type { Target } from './targets.ts';
import type { TransferGate } from './transfers.ts';
import { deviceErrorOf, type RegionChallenge } from './verify.ts';

/** Called with the done share of the device, 0 to 1, and the present activity. */
export type DeviceProgress = (fraction: number, action: string) => void;

export interface Work {
  readonly context: StepContext;
  readonly target: Target;
  readonly held: HeldDevice;
  readonly method: ErasureMethod;
  readonly challenges: readonly RegionChallenge[];
  readonly log: string[];
  readonly pace: TransferPace;
  readonly progress: DeviceProgress;
  /** Errors by kind, as evidence names kinds. */
  readonly errors: Record<string, bigint>;
  /** Bytes that the method wrote; challenges are not counted. */
  bytesWritten: number;
  /** The challenge has been read back as written, by this attempt or the one that is checked. */
  challenged: boolean;
  loss: DeviceLoss | undefined;
  methodMs: number;
  verifyMs: number;
  /** The number of readings, and the bytes of all readings. */
  readings: number;
  bytesOfReadings: number;
}

/** The counts before the first reading. */
export const noReadings = { verifyMs: 0, readings: 0, bytesOfReadings: 0 } as const;

/** Between two looks at the kernel while transfers go on, milliseconds. */
const presentEveryMs = 3_000;
/** Interval between reports of progress, milliseconds. */
const progressIntervalMs = 1_000;

/** Before each transfer: the step still goes on, and, every few seconds, the device is there. */
export function transferGateOf({ context, held }: Work): TransferGate {
  const isDue = every(context, presentEveryMs);
  return async () => {
    stopIfCancelled(context);
    if (isDue()) await held.checkAttached();
  };
}

/**
 * True once in so many milliseconds. It uses wall time, which is cheap enough for a read at each
 * transfer; a step of the clock makes it due at once.
 */
function every({ clock }: StepContext, intervalMs: number): () => boolean {
  let lastMs = clock.nowMs();
  return () => {
    const nowMs = clock.nowMs();
    if (Math.abs(nowMs - lastMs) < intervalMs) return false;
    lastMs = nowMs;
    return true;
  };
}

/** Counts bytes and reports the progress at intervals. */
export function progressReporter(work: Work, action: string): (bytes: number) => void {
  const { context, pace } = work;
  const isDue = every(context, progressIntervalMs);
  let isFirst = true;
  reportProgress(work, action);
  return (bytes) => {
    pace.add(bytes);
    if (!isDue() && !isFirst) return;
    isFirst = false;
    reportProgress(work, action);
  };
}

/** Reports the present activity and, as far as it is known, the speed. */
export function reportProgress({ pace, progress }: Work, action: string): void {
  progress(pace.fraction, [action, pace.text()].filter((part) => part !== '').join(', '));
}

export function stopIfCancelled({ signal }: Pick<StepContext, 'signal'>): void {
  if (signal.aborted) throw new DeviceError('cancelled before it was done');
}

/** Counts and keeps an error of the device, and answers its words. */
export function noteFailure(work: Work, error: unknown): string {
  const { message, loss, operation } = deviceErrorOf(error);
  if (operation !== undefined) countError(work, operation);
  work.loss ??= loss;
  work.log.push(message);
  return message;
}

export function countError({ errors }: Work, kind: string): void {
  errors[kind] = (errors[kind] ?? 0n) + 1n;
}

/** Runs one phase and answers how long it took, milliseconds. */
export async function timed(
  { context }: Work,
  act: () => Promise<void>,
  took: (ms: number) => void,
): Promise<void> {
  const startMs = context.clock.suspendAwareMs();
  try {
    await act();
  } finally {
    took(Math.max(0, Math.round(context.clock.suspendAwareMs() - startMs)));
  }
}
