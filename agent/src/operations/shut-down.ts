/**
 * Cuts the power of a running system after it was asked to stop.
 *
 * S1 No system is forced off before the deadline, with two exceptions: its BMC has no soft off or
 *    refuses this one, or the machine was switched on again after it had stopped.
 * S2 The wait is measured on a clock that only grows: a step of the wall clock moves no deadline.
 * S3 However the machine went off, in the end the power is asserted off and read back.
 * S4 During the wait the address may change to another BMC. So the BMC's identity is read again
 *    before the next command after the wait.
 * S5 An attempt asks once. A machine that is off is not asked (`BmcDriver.softOff`).
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { BmcDriver, BmcResult } from '@rackwright/bmc';
import { type agent, ShutdownOutcome } from '@rackwright/messages';
import { type Clock, pause } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import type { OperationContext } from '../session/index.ts';
import { resultOfBmc } from './bmc-access.ts';

/** Longest wait of a policy; a longer one is taken for a mistake. */
const waitMsMax = 3_600_000;
/** Between two readings of the power: the first ones soon, for many systems stop fast. */
const pollsAfterMs = [1_000, 2_000, 3_000] as const;
const laterPollsAfterMs = 5_000;
/** A machine that stopped by itself and is switched on again mostly is so within this. */
const settleMs = 2_000;

export interface ShutDownParts {
  readonly driver: BmcDriver;
  readonly clock: Clock;
  readonly context: Pick<OperationContext, 'signal' | 'reportProgress'>;
  /**
   * Reads the BMC's identity anew; returns the end of the attempt when it is not the host's BMC.
   */
  readonly prove: () => Promise<FinalResult | undefined>;
}

/** The power is off: it was read back. */
export interface WentOff {
  readonly kind: 'off';
  readonly shutdown: ShutdownOutcome;
}

/**
 * How long the system may still take, milliseconds; 0 or less: its time is over. Undefined: it is
 * forced off at once. Both deadlines are of one wall clock, and the time until the operation's own
 * deadline is known without that clock (S2).
 */
export function shutdownLeftMs(
  { kind, deadline }: agent.Operation,
  { remainingMs }: Pick<OperationContext, 'remainingMs'>,
): number | undefined {
  const shutdown = kind.case === 'setPower' ? kind.value.shutdownDeadline : undefined;
  if (shutdown === undefined || deadline === undefined) return undefined;
  const leftMs = remainingMs() - (timestampMs(deadline) - timestampMs(shutdown));
  return Math.min(leftMs, waitMsMax);
}

/** Asks, waits and forces; `leftMs` until the deadline. */
export async function shutDown(
  parts: ShutDownParts,
  leftMs: number,
): Promise<WentOff | FinalResult> {
  const { driver, clock, context } = parts;
  const { signal } = context;
  const endsAtMs = clock.suspendAwareMs() + leftMs;
  const { FORCED, WAS_OFF, STOPPED, FORCED_CAME_BACK } = ShutdownOutcome;
  if (leftMs <= 0) return assertOff(parts, { forced: FORCED, wasOff: WAS_OFF });
  const softOff = await driver.softOff(signal);
  if (softOff.kind === 'failed') {
    const forced = forcedAtOnce[softOff.type];
    if (forced === undefined) return resultOfBmc(softOff);
    return assertOff(parts, { forced, wasOff: WAS_OFF });
  }
  if (softOff.kind !== 'ok') return resultOfBmc(softOff);
  if (!softOff.value.wasRequested)
    return assertOff(parts, { forced: FORCED_CAME_BACK, wasOff: WAS_OFF });
  context.reportProgress({ step: 'power.off', text: 'the system was asked to shut down' });
  const seen = await waitUntilOff(parts, endsAtMs);
  if (seen.kind !== 'ok') return resultOfBmc(seen);
  if (seen.value === 'off') await pause(clock, settleMs, signal);
  const mismatch = await parts.prove();
  if (mismatch !== undefined) return mismatch;
  const forced = seen.value === 'off' ? FORCED_CAME_BACK : FORCED;
  return assertOff(parts, { forced, wasOff: STOPPED });
}

/** Refusals of a soft off for which nothing is left but force. */
const forcedAtOnce: Readonly<Record<string, ShutdownOutcome>> = {
  unsupported: ShutdownOutcome.FORCED_UNSUPPORTED,
  rejected: ShutdownOutcome.FORCED_REFUSED,
};

/** Whether it had to be switched decides how its power-off is reported (S3). */
async function assertOff(
  { driver, context }: ShutDownParts,
  { forced, wasOff }: Readonly<Record<'forced' | 'wasOff', ShutdownOutcome>>,
): Promise<WentOff | FinalResult> {
  const off = await driver.setPower('off', context.signal);
  if (off.kind !== 'ok') return resultOfBmc(off);
  return { kind: 'off', shutdown: off.value.changed ? forced : wasOff };
}

/** A BMC that does not answer meanwhile is polled again: the system has its request (S5). */
async function waitUntilOff(
  { driver, clock, context }: ShutDownParts,
  endsAtMs: number,
): Promise<BmcResult<'off' | 'late'>> {
  const { signal } = context;
  for (let poll = 0; ; poll += 1) {
    const leftMs = endsAtMs - clock.suspendAwareMs();
    if (leftMs <= 0) return { kind: 'ok', value: 'late' };
    await pause(clock, Math.min(pollsAfterMs[poll] ?? laterPollsAfterMs, leftMs), signal);
    const power = await driver.powerState(signal);
    if (power.kind === 'ok' && power.value === 'off') return { kind: 'ok', value: 'off' };
    if (power.kind === 'failed') return power;
    if (power.kind === 'transient' && power.reason === 'cancelled') return power;
  }
}
