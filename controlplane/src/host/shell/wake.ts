/** When a host must next be reconciled without an event: the earliest future time in its record. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { FaultSeverity, hostWaitOf, type store } from '@rackwright/messages';
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
  const next = new Earliest(nowMs);
  next.at(record.forcedUntil);
  next.at(status.backoff?.nextAttemptTime);
  for (const { until } of status.holds) next.at(until);
  next.at(record.powerEnforcement?.nextTime);
  next.atMs(takeOverAtMs(record));
  for (const { type, severity, since } of status.faults) {
    if (type === bmcUnreachable && severity === FaultSeverity.WARNING) {
      next.at(since, silenceErrorMs);
    }
  }
  if (run === undefined) next.at(status.afterFailure?.runnerUntil);
  else {
    const step = run.steps[run.currentStep];
    next.atMs(step === undefined ? undefined : pauseEndsMs(step));
    next.at(record.operation?.notBefore);
    next.at(record.call?.notBefore);
    for (const deadline of [run.deadline, step?.deadline]) {
      for (const laterMs of [0, settleMs, agentWordMs + settleMs]) next.at(deadline, laterMs);
    }
    if (hostWaitOf(run.waiting) === 'agent') next.at(run.waiting?.since, contactDeadlineMs);
  }
  return next.ms;
}

/** The earliest future time of those that are added. */
class Earliest {
  readonly #nowMs: number;
  ms: number | undefined;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  at(time: Timestamp | undefined, laterMs = 0): void {
    if (time !== undefined) this.atMs(timestampMs(time) + laterMs);
  }

  atMs(ms: number | undefined): void {
    if (ms === undefined || ms <= this.#nowMs) return;
    if (this.ms === undefined || ms < this.ms) this.ms = ms;
  }
}

/**
 * A deadline fires once the agent has been heard after it, which may take one heartbeat (R5). When
 * an agent is heard after a longer silence, its hosts are woken at once, and again after the time
 * for its reports.
 */
export const settleMs = 7_000;
