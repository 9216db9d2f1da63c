/** Operations in lines and spans: the ids by which they are found together. Pure. */
import type { agent } from '@rackwright/messages';
import type { LogFields } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';
import { operationTrace, type Span } from '@rackwright/trace';

/** Fields of every line about an operation. */
export function idsOf({ id, hostUid, traceParent }: agent.Operation): LogFields {
  const [, run] = id.split('/');
  const trace = operationTrace(id, traceParent)?.traceId;
  return { operation: id, host: hostUid, run: Number(run ?? 0) || undefined, trace };
}

/** Undefined: its trace is not recorded, or its id is of no run. */
export function spanOf(
  { id, hostName, traceParent, kind }: agent.Operation,
  result: FinalResult,
  times: { readonly startMs: number; readonly endMs: number },
): Span | undefined {
  const trace = operationTrace(id, traceParent);
  if (trace === undefined || !trace.sampled) return undefined;
  const { traceId, spanId, parentSpanId } = trace;
  const name = kind.case === 'runStep' ? kind.value.step : (kind.case ?? 'unknown');
  const attributes = { 'rackwright.host': hostName, 'rackwright.operation': id };
  const failure = failureOf(result);
  return { name, kind: 'internal', traceId, spanId, parentSpanId, ...times, failure, attributes };
}

function failureOf(result: FinalResult): string | undefined {
  switch (result.kind) {
    case 'complete':
      return undefined;
    case 'failed':
      return result.type;
    case 'retryAfter':
    case 'transientError':
      return result.kind;
  }
}
