/**
 * The failures of a call: one closed union, mapped once to gRPC codes
 * (`packages/rpc/src/wire/status.ts`).
 *
 * Invariants:
 * 1. `message` is for the caller: what is wrong and what would be right. It never holds a secret, a
 *    stack or the words of a cause.
 * 2. The cause stays in `ApiFailure.cause` for the log; nothing in this folder puts it on the wire.
 * 3. All violations of one request are reported together.
 */

/** One thing wrong with one field, in google.rpc.BadRequest's terms. */
export interface FieldViolation {
  /** Path of the field in the request, proto names joined by ".", e.g. "host.spec.boot_macs[0]". */
  readonly field: string;
  /** What is wrong and what would be right. */
  readonly description: string;
}

interface ErrorText {
  /** For people. */
  readonly message: string;
  /** For programs: UPPER_SNAKE_CASE, stable; travels as google.rpc.ErrorInfo.reason. */
  readonly reason: string;
  /** Facts that belong to the reason; travels as google.rpc.ErrorInfo.metadata. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The closed taxonomy. */
export type ApiError =
  | (ErrorText & {
      readonly kind: 'invalidArgument';
      readonly violations: readonly FieldViolation[];
    })
  | (ErrorText & { readonly kind: 'notFound' })
  /** `violations` name the values that others hold; empty when it is the resource itself. */
  | (ErrorText & { readonly kind: 'alreadyExists'; readonly violations: readonly FieldViolation[] })
  /** The state of the system forbids it; the same request may succeed after a person has acted. */
  | (ErrorText & { readonly kind: 'failedPrecondition' })
  /** Somebody else changed it first (etag); read again and decide again. */
  | (ErrorText & { readonly kind: 'aborted' })
  /** A position or page that no longer exists: start over from the beginning. */
  | (ErrorText & { readonly kind: 'outOfRange' })
  | (ErrorText & { readonly kind: 'unauthenticated' })
  | (ErrorText & { readonly kind: 'permissionDenied' })
  | (ErrorText & { readonly kind: 'resourceExhausted' })
  /** Try again later, after `retryAfterMs` when given. */
  | (ErrorText & { readonly kind: 'unavailable'; readonly retryAfterMs?: number })
  | (ErrorText & { readonly kind: 'deadlineExceeded' })
  | (ErrorText & { readonly kind: 'cancelled' })
  | (ErrorText & { readonly kind: 'unimplemented' })
  /** Our fault. The log has the same `reference`. */
  | (ErrorText & { readonly kind: 'internal'; readonly reference: string });

export type ApiErrorKind = ApiError['kind'];

/** Refusals for load or missing credentials. Their number is in the callers' hands. */
const refusals: ReadonlySet<ApiErrorKind> = new Set(['unauthenticated', 'unavailable']);

/** The only error that handlers throw on purpose and that clients receive. */
export class ApiFailure extends Error {
  readonly error: ApiError;

  /** `cause` is for the log only (invariant 2). Refusals have no stack: it costs most. */
  constructor(error: ApiError, cause?: unknown) {
    const { stackTraceLimit } = Error;
    if (refusals.has(error.kind)) Error.stackTraceLimit = 0;
    super(error.message, cause === undefined ? undefined : { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiFailure';
    this.error = error;
  }
}

/** Every violation of a request at once; `violations` must not be empty. */
export function invalidArgument(violations: readonly FieldViolation[]): ApiFailure {
  const first = violations[0];
  const message =
    first === undefined
      ? 'The request is invalid.'
      : violations.length === 1
        ? `${first.field}: ${first.description}`
        : `${violations.length} fields are invalid; first ${first.field}: ${first.description}`;
  return new ApiFailure({
    kind: 'invalidArgument',
    message,
    reason: 'FIELD_VIOLATIONS',
    violations,
  });
}

/** Nothing has the resource name `name`. */
export function notFound(name: string): ApiFailure {
  return new ApiFailure({
    kind: 'notFound',
    message: `${name} does not exist.`,
    reason: 'RESOURCE_NOT_FOUND',
    metadata: { resource: name },
  });
}

/** The name, or values that must be unique, are taken. */
export function alreadyExists(
  message: string,
  violations: readonly FieldViolation[] = [],
): ApiFailure {
  return new ApiFailure({ kind: 'alreadyExists', message, reason: 'ALREADY_EXISTS', violations });
}

/** Somebody else changed it first. */
export function aborted(reason: string, message: string): ApiFailure {
  return new ApiFailure({ kind: 'aborted', message, reason });
}

/** A refusal by state: `reason` is UPPER_SNAKE_CASE. */
export function failedPrecondition(
  reason: string,
  message: string,
  metadata: Readonly<Record<string, string>> = {},
): ApiFailure {
  return new ApiFailure({ kind: 'failedPrecondition', message, reason, metadata });
}

/** No or no valid proof of the caller's identity. */
export function unauthenticated(reason: string, message: string): ApiFailure {
  return new ApiFailure({ kind: 'unauthenticated', message, reason });
}

/** Known, but not allowed. */
export function permissionDenied(reason: string, message: string): ApiFailure {
  return new ApiFailure({ kind: 'permissionDenied', message, reason });
}

/** Something that we depend on does not answer now. */
export function unavailable(
  reason: string,
  message: string,
  retryAfterMs?: number,
  cause?: unknown,
): ApiFailure {
  const error = { kind: 'unavailable', message, reason } as const;
  return new ApiFailure(retryAfterMs === undefined ? error : { ...error, retryAfterMs }, cause);
}
