import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  FailureType,
  failureNames,
  type TransientCause,
  transientNames,
} from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conflictReasons, type Result } from './result.ts';
import { resultFromWire, resultToWire } from './wire.ts';

type WireResult = agent.Report['result'];

const word = fc.string({ maxLength: 20 });
const someBytes = fc.uint8Array({ minLength: 1, maxLength: 8 });
const durationMs = fc.integer({ min: 0, max: 10_000_000 });
const observations = fc
  .boolean()
  .map((poweredOn) => create(agent.ObservationsSchema, { poweredOn }));
const evidence = fc
  .record({ payload: someBytes, signature: someBytes, publicKey: someBytes })
  .map((parts) => create(agent.EvidenceSchema, parts));
const output = fc
  .record({ tail: someBytes, exit: fc.record({ code: fc.integer({ min: 0, max: 255 }) }) })
  .map((parts) => create(agent.StepOutputSchema, parts));
const { NETBOOT, ADDRESS_ASKED, WRONG_TOKEN } = agent.HostSignKind;
const signKinds = [NETBOOT, ADDRESS_ASKED, WRONG_TOKEN];
const sign = fc
  .record({ kind: fc.constantFrom(...signKinds), detail: fc.string({ maxLength: 9 }) })
  .map(({ kind, detail }) => create(agent.HostSignSchema, { kind, detail }));
const nonEmptyWord = fc.string({ minLength: 1, maxLength: 20 });

const results: fc.Arbitrary<Result> = fc.oneof(
  fc.record(
    { kind: fc.constant('complete' as const), observations, evidence, output },
    { requiredKeys: ['kind'] },
  ),
  fc.record(
    {
      kind: fc.constant('continuing' as const),
      step: word,
      text: word,
      percent: fc.integer({ min: 0, max: 100 }),
      queuePlace: fc.integer({ min: 1, max: 10_000 }),
      signs: fc.array(sign, { minLength: 1, maxLength: 3 }),
      hintMs: durationMs,
    },
    { requiredKeys: ['kind', 'step', 'text'] },
  ),
  fc.record({
    kind: fc.constant('retryAfter' as const),
    reason: fc.constantFrom(...conflictReasons),
    message: word,
    delayMs: durationMs,
  }),
  fc.record({ kind: fc.constant('hostUpdated' as const), observations }),
  fc.record(
    {
      kind: fc.constant('failed' as const),
      type: fc.constantFrom(...failureNames),
      message: word,
      detail: nonEmptyWord,
      lastProgress: nonEmptyWord,
      observations,
      evidence,
      output,
      disksUntouched: fc.constant(true as const),
    },
    { requiredKeys: ['kind', 'type', 'message'] },
  ),
  fc.record(
    {
      kind: fc.constant('transientError' as const),
      cause: fc.constantFrom(...transientNames),
      message: word,
      delayMs: durationMs,
      disksUntouched: fc.constant(true as const),
    },
    { requiredKeys: ['kind', 'cause', 'message'] },
  ),
);

/** The message as the other side decodes it. */
function overTheWire(result: WireResult): agent.Report {
  const bytes = toBinary(agent.ReportSchema, create(agent.ReportSchema, { result }));
  return fromBinary(agent.ReportSchema, bytes);
}

function problemOf(result: WireResult): string {
  const decoded = resultFromWire(overTheWire(result));
  return decoded.kind === 'unsupported' ? decoded.problem : `decoded as ${decoded.kind}`;
}

test('the codec gives back every result that went over the wire', () => {
  fc.assert(
    fc.property(results, (result) => {
      expect(resultFromWire(overTheWire(resultToWire(result)))).toEqual(result);
    }),
  );
});

describe('R8: never success', () => {
  test('a report without a result is no success', () => {
    expect(problemOf({ case: undefined })).toBe('result is missing');
  });

  test('a result of a kind from the future is no success', () => {
    // Field 15, length-delimited, empty: a seventh member of the oneof.
    const report = fromBinary(agent.ReportSchema, Uint8Array.of(15 * 8 + 2, 0));
    expect(resultFromWire(report)).toEqual({ kind: 'unsupported', problem: 'result is missing' });
  });

  test('evidence that lacks payload, signature or key is no success', () => {
    const whole = {
      payload: Uint8Array.of(1),
      signature: Uint8Array.of(2),
      publicKey: Uint8Array.of(3),
    };
    for (const part of ['payload', 'signature', 'publicKey'] as const) {
      const evidence = { ...whole, [part]: new Uint8Array() };
      const value = create(agent.CompleteSchema, { evidence });
      expect(problemOf({ case: 'complete', value })).toBe(`complete.evidence.${part} is missing`);
    }
    const evidence = { ...whole, signature: new Uint8Array() };
    const value = create(agent.FailedSchema, { type: FailureType.NOT_ERASED, evidence });
    expect(problemOf({ case: 'failed', value })).toBe('failed.evidence.signature is missing');
  });

  test('a failure of an unknown type is no success', () => {
    for (const type of [0, 9_999]) {
      const value = create(agent.FailedSchema, { type: type as FailureType });
      expect(problemOf({ case: 'failed', value })).toContain('failed.type');
    }
  });

  test('a transient error of an unknown cause is no success', () => {
    const value = create(agent.TransientErrorSchema, { cause: 9_999 as TransientCause });
    expect(problemOf({ case: 'transientError', value })).toContain('transient_error.cause');
  });

  test('a conflict without a known reason or a delay is no success', () => {
    const delay = durationFromMs(1);
    for (const reason of [agent.ConflictReason.UNSPECIFIED, 99 as agent.ConflictReason]) {
      const value = create(agent.RetryAfterSchema, { reason, delay });
      expect(problemOf({ case: 'retryAfter', value })).toContain('retry_after.reason');
    }
    const reason = agent.ConflictReason.LOCKED;
    const without = create(agent.RetryAfterSchema, { reason });
    expect(problemOf({ case: 'retryAfter', value: without })).toContain('retry_after.delay');
    const negative = create(agent.RetryAfterSchema, { reason, delay: durationFromMs(-1) });
    expect(problemOf({ case: 'retryAfter', value: negative })).toContain('retry_after.delay');
  });

  test('a report of facts without any is no success', () => {
    const value = create(agent.HostUpdatedSchema);
    expect(problemOf({ case: 'hostUpdated', value })).toBe('host_updated.observations is missing');
  });

  test('progress beyond its end is no success', () => {
    const value = create(agent.ContinuingSchema, { percent: 101 });
    expect(problemOf({ case: 'continuing', value })).toContain('continuing.percent');
  });
});
