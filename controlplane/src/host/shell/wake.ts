/** When a host must be looked at again by itself: the earliest stored time that is to come. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { FaultSeverity, type store } from '@rackwright/messages';
import { bmcUnreachable, silenceErrorMs } from '../bmc/health.ts';
import { takeOverAtMs } from '../operation/calls.ts';
import { agentWordMs } from '../operation/operation.ts';
import { activeRun } from '../pass/pass.ts';
import { pauseEndsMs } from '../pass/pause.ts';
import { defaultTiming } from '../pass/timing.ts';

/** Wall time in milliseconds; undefined when only an event can move the host. */
export function nextWakeMs(
  record: store.HostRecord,
  nowMs: number,
  { contactDeadlineMs } = defaultTiming,
): number | undefined {
  const status = record.host?.status;
  if (status === undefined) return undefined;
  const run = activeRun(status);
  const times: (Timestamp | undefined)[] = [
    record.forcedUntil,
    status.backoff?.nextAttemptTime,
    ...status.holds.map(({ until }) => until),
    record.powerEnforcement?.nextTime,
  ];
  const deadlines: (Timestamp | undefined)[] = [];
  const waiting = run?.waiting?.reason === 'agent' ? [run.waiting.since] : [];
  let pauseMs: number | undefined;
  if (run === undefined) times.push(status.afterFailure?.runnerUntil);
  else {
    const step = run.steps[run.currentStep];
    pauseMs = step === undefined ? undefined : pauseEndsMs(step);
    times.push(record.operation?.notBefore, record.call?.notBefore);
    deadlines.push(run.deadline, run.steps[run.currentStep]?.deadline);
  }
  const takeOverMs = takeOverAtMs(record);
  const silences = status.faults
    .filter(({ type, severity }) => type === bmcUnreachable && severity === FaultSeverity.WARNING)
    .map(({ since }) => since);
  const future = [
    ...inMs(times),
    ...(pauseMs === undefined ? [] : [pauseMs]),
    ...(takeOverMs === undefined ? [] : [takeOverMs]),
    ...inMs(deadlines),
    ...inMs(deadlines).flatMap((at) => [at + settleMs, at + agentWordMs + settleMs]),
    ...inMs(waiting).map((since) => since + contactDeadlineMs),
    ...inMs(silences).map((since) => since + silenceErrorMs),
  ].filter((timeMs) => timeMs > nowMs);
  return future.length === 0 ? undefined : Math.min(...future);
}

/**
 * A deadline fires once the agent has spoken after it, which may be a heartbeat later (R5). Whoever
 * hears an agent that was silent for longer wakes its hosts, then and when it has had its word.
 */
export const settleMs = 7_000;

function inMs(times: readonly (Timestamp | undefined)[]): number[] {
  return times.filter((time) => time !== undefined).map((time) => timestampMs(time));
}
