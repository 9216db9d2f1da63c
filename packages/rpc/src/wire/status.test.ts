import { create, toBinary } from '@bufbuild/protobuf';
import { status as Code } from '@grpc/grpc-js';
import { type ApiError, invalidArgument } from '@rackwright/messages';
import * as googleRpc from '@rackwright/messages/google-rpc';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromStatus, toStatus, violationsOnWireMax } from './status.ts';

const text = fc.string({ maxLength: 80 }).map((value) => value.toWellFormed());
const said = fc.record({
  message: text,
  reason: text,
  metadata: fc.dictionary(
    text.filter((key) => key !== 'reference' && key !== '__proto__'),
    text,
  ),
});

const anyError: fc.Arbitrary<ApiError> = fc.oneof(
  fc
    .tuple(
      said,
      fc.constantFrom(
        'notFound',
        'failedPrecondition',
        'aborted',
        'outOfRange',
        'unauthenticated',
        'permissionDenied',
        'resourceExhausted',
        'deadlineExceeded',
        'cancelled',
        'unimplemented',
      ),
    )
    .map(([base, kind]): ApiError => ({ ...base, kind })),
  fc
    .tuple(
      said,
      fc.constantFrom('invalidArgument', 'alreadyExists'),
      fc.array(fc.record({ field: text, description: text }), { maxLength: 5 }),
    )
    .map(([base, kind, violations]): ApiError => ({ ...base, kind, violations })),
  fc
    .tuple(said, fc.integer({ min: 0, max: 3_600_000 }))
    .map(([base, retryAfterMs]): ApiError => ({ ...base, kind: 'unavailable', retryAfterMs })),
);

describe('errors on the wire', () => {
  test('come back as they went, for every kind', () => {
    fc.assert(
      fc.property(anyError, (error) => {
        const { code, message, details } = toStatus(error);
        expect(fromStatus(code, message, Buffer.from(details))).toEqual(error);
      }),
    );
  });

  test('carry the reference of an internal error and nothing of its cause', () => {
    const { code, message, details } = toStatus({
      kind: 'internal',
      message: 'An internal error.',
      reason: 'INTERNAL',
      reference: 'abc',
    });
    expect(code).toBe(Code.INTERNAL);
    expect(fromStatus(code, message, Buffer.from(details))).toMatchObject({
      kind: 'internal',
      reference: 'abc',
    });
  });

  test('report all violations together, up to what trailers hold', () => {
    const violations = Array.from({ length: violationsOnWireMax + 5 }, (_, index) => ({
      field: `f${index}`,
      description: 'is wrong',
    }));
    const { error } = invalidArgument(violations);
    const { code, message, details } = toStatus(error);
    expect(code).toBe(Code.INVALID_ARGUMENT);
    expect(message).toContain('37 fields are invalid');
    const back = fromStatus(code, message, Buffer.from(details));
    expect(back.kind === 'invalidArgument' && back.violations).toHaveLength(violationsOnWireMax);
  });

  test('are read from peers that send no details, strange details or unknown codes', () => {
    expect(fromStatus(Code.NOT_FOUND, 'gone', undefined)).toMatchObject({
      kind: 'notFound',
      message: 'gone',
    });
    expect(fromStatus(Code.ABORTED, 'x', Buffer.from('not protobuf'))).toMatchObject({
      kind: 'aborted',
      reason: '',
    });
    expect(fromStatus(99, 'x', undefined).kind).toBe('internal');
    expect(fromStatus(Code.UNKNOWN, 'x', undefined).kind).toBe('internal');
    const empty = toBinary(googleRpc.StatusSchema, create(googleRpc.StatusSchema));
    expect(fromStatus(Code.UNAVAILABLE, 'x', Buffer.from(empty))).toMatchObject({
      kind: 'unavailable',
    });
  });

  test('are cut to a bounded length and never hold lone surrogates', () => {
    const message = `${'x'.repeat(5_000)}\ud800`;
    const status = toStatus({ kind: 'notFound', message, reason: 'R' });
    expect(status.message.length).toBeLessThan(1_100);
    expect(() =>
      encodeURI(toStatus({ kind: 'notFound', message: '\ud800', reason: 'R' }).message),
    ).not.toThrow();
  });
});
