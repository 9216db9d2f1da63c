import { create, toBinary } from '@bufbuild/protobuf';
import * as agent from '@rackwright/messages/agent';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { boundResult, boundText } from './bounds.ts';
import type { FailedAttempt, Result } from './result.ts';
import { resultToWire } from './wire.ts';

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

test('a text that fits stays unchanged; a cut text says where it was cut', () => {
  expect(boundText('a'.repeat(1024), 1024)).toBe('a'.repeat(1024));
  const cut = boundText('a'.repeat(1025), 1024);
  expect(cut).toMatch(/^a+ … \(cut\)$/);
  expect(bytesOf(cut)).toBeLessThanOrEqual(1024);
});

test('a text is cut by bytes and never inside a character', () => {
  const text = fc.string({ unit: 'binary', maxLength: 200 });
  fc.assert(
    fc.property(text, fc.integer({ min: 16, max: 200 }), (whole, bytesMax) => {
      const cut = boundText(whole, bytesMax);
      expect(bytesOf(cut)).toBeLessThanOrEqual(bytesMax);
      expect(cut.isWellFormed()).toBe(true);
    }),
  );
});

test('the whole of a cut message is kept in the detail, unless there is a detail', () => {
  const message = `names: ${'disk '.repeat(1000)}`;
  const long: FailedAttempt = { kind: 'failed', type: 'notErased', message };
  const bounded = boundResult(long);
  expect(bytesOf(bounded.message)).toBeLessThanOrEqual(1024);
  expect(bytesOf(bounded.detail ?? '')).toBeGreaterThan(4000);
  const own: FailedAttempt = { kind: 'failed', type: 'ioError', message, detail: 'the words' };
  expect(boundResult(own).detail).toBe('the words');
});

test.each<Result>([
  {
    kind: 'failed',
    type: 'interrupted',
    message: 'm'.repeat(1e6),
    detail: '€'.repeat(1e6),
    lastProgress: 'p'.repeat(1e6),
  },
  { kind: 'retryAfter', reason: 'locked', message: '€'.repeat(1e6), delayMs: 1 },
  { kind: 'transientError', cause: 'network', message: 'x'.repeat(1e6) },
  { kind: 'continuing', step: 's'.repeat(1e6), text: 't'.repeat(1e6) },
])('no report of $kind exceeds 16 KiB', (result) => {
  const report = create(agent.ReportSchema, { result: resultToWire(boundResult(result)) });
  expect(toBinary(agent.ReportSchema, report).length).toBeLessThan(16 * 1024);
});

test('the end of an output and its exit are kept in a bounded text', () => {
  const tail = new Uint8Array(70 * 1024).fill(1);
  tail[tail.length - 1] = 9;
  const exit = {
    code: 3,
    outputBytes: 9_000_000n,
    lastOutput: '€'.repeat(1e6),
    signal: 'S'.repeat(99),
  };
  const output = create(agent.StepOutputSchema, { tail, exit });
  for (const result of [
    boundResult({ kind: 'complete', output }),
    boundResult({ kind: 'failed', type: 'exitCode', message: 'm', output }),
  ]) {
    expect(result.output?.tail.length).toBe(64 * 1024);
    expect(result.output?.tail.at(-1)).toBe(9);
    expect(result.output?.exit).toMatchObject({ code: 3, outputBytes: 9_000_000n });
    expect(bytesOf(result.output?.exit?.lastOutput ?? '')).toBeLessThanOrEqual(1024);
    expect(bytesOf(result.output?.exit?.signal ?? '')).toBeLessThanOrEqual(16);
  }
});
