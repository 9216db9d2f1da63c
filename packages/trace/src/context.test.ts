import fc from 'fast-check';
import { expect, test } from 'vitest';
import { operationTrace, parseTraceparent, runTrace, traceparentOf } from './index.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

test.each([
  [`00-${traceId}-${spanId}-01`, true],
  [`00-${traceId}-${spanId}-00`, false],
  [`00-${traceId}-${spanId}-03`, true],
  [`01-${traceId}-${spanId}-01-what-comes-later`, true],
] as const)('%s is taken', (text, sampled) => {
  expect(parseTraceparent(text)).toEqual({ traceId, spanId, sampled });
});

test.each([
  undefined,
  '',
  `ff-${traceId}-${spanId}-01`,
  `00-${traceId}-${spanId}-01-more`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId}-${spanId}-1`,
  `01-${traceId}-${spanId}-01-${'x'.repeat(300)}`,
])('%s is no trace context', (text) => {
  expect(parseTraceparent(text)).toBeUndefined();
});

test('a traceparent that was formatted parses back to the same context', () => {
  const hex = (length: number) =>
    fc.array(fc.constantFrom(...'123456789abcdef'), { minLength: length, maxLength: length });
  fc.assert(
    fc.property(hex(32), hex(16), fc.boolean(), (trace, span, sampled) => {
      const context = { traceId: trace.join(''), spanId: span.join(''), sampled };
      expect(parseTraceparent(traceparentOf(context))).toEqual(context);
    }),
  );
});

test('an operation stands below its step, below its run, below the call that asked', () => {
  const call = `00-${traceId}-${spanId}-01`;
  const run = runTrace('uid', 7n, call);
  expect(run).toMatchObject({ traceId, callSpanId: spanId });
  const operation = operationTrace('uid/7/3/2', call);
  expect(operation).toMatchObject({ traceId, sampled: true, parentSpanId: run.step(3) });
  const ids = [run.spanId, run.step(3), run.step(4), operation?.spanId, spanId];
  expect(new Set(ids).size).toBe(5);
});

test('a run that nobody called for has a trace of its own, the same in every program', () => {
  const run = runTrace('uid', 7n, '');
  expect(run).toMatchObject({ callSpanId: undefined, sampled: true });
  expect(operationTrace('uid/7/0/1', '')?.traceId).toBe(run.traceId);
  expect(runTrace('uid', '7', 'nonsense').traceId).toBe(run.traceId);
  expect(runTrace('uid', 8n, '').traceId).not.toBe(run.traceId);
});

test.each(['', 'uid', 'uid/7', 'uid/7/x/1', 'uid/7/1/1/1'])('"%s" names no operation', (id) => {
  expect(operationTrace(id, '')).toBeUndefined();
});
