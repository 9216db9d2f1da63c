/** A call continues its caller's trace, and its work belongs to that trace. */
import { ApiFailure, type BoundService, type CallContext, HostService } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { parseTraceparent, type Span } from '@rackwright/trace';
import { expect, test } from 'vitest';
import { traceCalls } from './traced.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerSpan = '00f067aa0ba902b7';
const clock = { nowMs: () => 5_000 };

function contextWith(traceparent?: string): CallContext {
  const header = (name: string) => (name === 'traceparent' ? traceparent : undefined);
  const { signal } = new AbortController();
  const peerCertificate = () => undefined;
  return { header, method: '', peerAddress: '', peerCertificate, signal, deadlineMs: Infinity };
}

function tracing(handler: (context: CallContext) => Promise<unknown>) {
  const spans: Span[] = [];
  const calls = traceCalls({
    clock,
    random: seededRandom(1),
    recordSpan: (span) => spans.push(span),
  });
  const handlers = { getHost: (_input: never, context: CallContext) => handler(context) };
  const service: BoundService = { service: HostService, handlers };
  const [traced] = calls.traced([service]);
  const call = (context: CallContext) => traced?.handlers['getHost']?.({} as never, context);
  return { spans, calls, call };
}

test('a call with a traceparent is a span of that trace, and so is what it starts', async () => {
  let started: string | undefined;
  const { spans, calls, call } = tracing(async (context) => {
    started = calls.traceOf(context);
  });
  await call(contextWith(`00-${traceId}-${callerSpan}-01`));
  expect(spans).toMatchObject([
    { name: 'HostService.GetHost', kind: 'server', traceId, parentSpanId: callerSpan },
  ]);
  expect(parseTraceparent(started)).toEqual({
    ...{ traceId, sampled: true },
    spanId: spans[0]?.spanId,
  });
});

test('a call without one begins a trace, and a trace that is not recorded stays so', async () => {
  const { spans, call } = tracing(async () => undefined);
  await call(contextWith());
  await call(contextWith('nonsense'));
  await call(contextWith(`00-${traceId}-${callerSpan}-00`));
  expect(spans).toHaveLength(2);
  expect(new Set(spans.map((span) => span.traceId)).size).toBe(2);
  expect(spans[0]?.parentSpanId).toBeUndefined();
});

test('a call that is refused is a span with the kind of its error, and no text', async () => {
  const { spans, call } = tracing(async () => {
    throw new ApiFailure({ kind: 'notFound', message: 'hosts/secret', reason: 'NOT_FOUND' });
  });
  await expect(call(contextWith())).rejects.toThrow();
  expect(spans[0]?.failure).toBe('notFound');
  expect(JSON.stringify(spans)).not.toContain('secret');
});

test('work that a call starts has its caller’s trace, also if no span is recorded', () => {
  const { traceOf } = traceCalls({ clock, random: seededRandom(1) });
  const parent = `00-${traceId}-${callerSpan}-01`;
  expect(traceOf(contextWith(parent))).toBe(parent);
  expect(traceOf(contextWith())).toBeUndefined();
});
