/** Finished runs as spans: the run, and below it each step that was reached. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  enumWord,
  failureWord,
  type HostUid,
  type Run,
  RunKindSchema,
  RunOutcome,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { type RunTrace, runTrace, type Span } from '@rackwright/trace';

/** The host of a run. */
export interface HostOfRun {
  /** "hosts/HOST" */
  readonly name: string;
  readonly uid: HostUid;
}

/** Empty for a run whose trace is not recorded. */
export function spansOf({ name: host, uid }: HostOfRun, run: Run): readonly Span[] {
  const trace = runTrace(uid, run.number, run.traceParent);
  const times = timesOf(run);
  if (!trace.sampled || times === undefined) return [];
  const kind = enumWord(RunKindSchema, run.kind) ?? 'run';
  const own: Span = {
    ...{ name: kind, kind: 'internal', traceId: trace.traceId, spanId: trace.spanId, ...times },
    parentSpanId: trace.callSpanId,
    failure: run.outcome === RunOutcome.SUCCEEDED ? undefined : failureWord(run.error?.type ?? 0),
    attributes: { 'rackwright.host': host, 'rackwright.run': Number(run.number) },
  };
  return [own, ...run.steps.flatMap((step, index) => spanOfStep(host, run, trace, step, index))];
}

function spanOfStep(host: string, run: Run, trace: RunTrace, step: RunStep, at: number): Span[] {
  const times = timesOf(step);
  if (times === undefined) return [];
  return [
    {
      ...{ name: step.name, kind: 'internal', traceId: trace.traceId, ...times },
      ...{ spanId: trace.step(at), parentSpanId: trace.spanId },
      failure: step.state === StepState.FAILED ? 'failed' : undefined,
      attributes: {
        'rackwright.host': host,
        'rackwright.run': Number(run.number),
        'rackwright.step': at,
        'rackwright.attempts': step.attempt,
      },
    },
  ];
}

function timesOf({ startTime, endTime }: Pick<Run, 'startTime' | 'endTime'>) {
  if (startTime === undefined || endTime === undefined) return undefined;
  return { startMs: timestampMs(startTime), endMs: timestampMs(endTime) };
}
