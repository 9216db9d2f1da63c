/** When a host must be looked at again by itself: the earliest stored time that is to come. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { store } from '@rackwright/api';
import { activeRun } from './turn.ts';

/** Wall time in milliseconds; undefined when only an event can move the host. */
export function nextWakeMs(record: store.HostRecord, nowMs: number): number | undefined {
  const status = record.host?.status;
  if (status === undefined) return undefined;
  const run = activeRun(status);
  const times: (Timestamp | undefined)[] = [status.backoff?.nextAttemptTime];
  if (run !== undefined) {
    times.push(run.deadline, run.steps[run.currentStep]?.deadline, record.operation?.notBefore);
  }
  const future = times
    .filter((time) => time !== undefined)
    .map((time) => timestampMs(time))
    .filter((timeMs) => timeMs > nowMs);
  return future.length === 0 ? undefined : Math.min(...future);
}
