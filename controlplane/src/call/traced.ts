/**
 * Calls as spans: each continues the trace of its caller, or begins a trace for the work that it
 * starts.
 */
import { ApiFailure, type BoundService, type CallContext } from '@rackwright/messages';
import { type Clock, type Random, randomId } from '@rackwright/platform';
import {
  parseTraceparent,
  type RecordSpan,
  type TraceContext,
  traceparentOf,
} from '@rackwright/trace';

type AnyHandler = BoundService['handlers'][string];

export interface CallTracing {
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly random: Random;
  /** Unset: no spans are recorded, and work that a call starts has at most its caller's trace. */
  readonly recordSpan?: RecordSpan | undefined;
}

export interface TracedCalls {
  /** The same services; every unary call is a span. */
  traced(services: readonly BoundService[]): BoundService[];
  /**
   * The traceparent for work that a call starts; undefined: neither the caller nor this program
   * traces.
   */
  traceOf(context: CallContext): string | undefined;
}

const spanIdDigits = 16;

/** A call's own span while it is under way, by its context. */
export function traceCalls({ clock, random, recordSpan }: CallTracing): TracedCalls {
  const own = new WeakMap<CallContext, TraceContext>();
  const traced = (name: string, handler: AnyHandler): AnyHandler => {
    if (recordSpan === undefined) return handler;
    return async (input, context) => {
      const caller = callerOf(context);
      const { traceId = randomId(random), sampled = true } = caller ?? {};
      const trace = { traceId, sampled, spanId: randomId(random).slice(0, spanIdDigits) };
      own.set(context, trace);
      const startMs = clock.nowMs();
      let failure: string | undefined;
      try {
        return await handler(input, context);
      } catch (error) {
        failure = error instanceof ApiFailure ? error.error.kind : 'internal';
        throw error;
      } finally {
        const times = { startMs, endMs: clock.nowMs() };
        const whose = { traceId, spanId: trace.spanId, parentSpanId: caller?.spanId };
        const attributes = { 'rpc.system': 'grpc', 'rpc.method': name };
        if (sampled) recordSpan({ name, kind: 'server', ...whose, ...times, failure, attributes });
      }
    };
  };
  return {
    traced: (services) =>
      services.map(({ service, handlers }) => ({
        service,
        handlers: Object.fromEntries(
          service.methods.flatMap(({ localName, name, methodKind }) => {
            const handler = handlers[localName];
            if (handler === undefined) return [];
            const isCall = methodKind === 'unary';
            return [[localName, isCall ? traced(`${service.name}.${name}`, handler) : handler]];
          }),
        ),
      })),
    traceOf: (context) => {
      const trace = own.get(context) ?? callerOf(context);
      return trace === undefined ? undefined : traceparentOf(trace);
    },
  };
}

function callerOf(context: CallContext): TraceContext | undefined {
  return parseTraceparent(context.header('traceparent'));
}
